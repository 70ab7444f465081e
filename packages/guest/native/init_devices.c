/* Kernel modules, and the two drives by what is written on them: their order and serials say nothing. */
#define _GNU_SOURCE
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DRIVE_WAIT_SECONDS 10
#define SUPERBLOCK_OFFSET 1024

void load_modules(const char *list)
{
	FILE *file = fopen(list, "re");
	char path[256];

	if (file == NULL)
		die("cannot read %s: %s", list, strerror(errno));
	while (fgets(path, sizeof path, file) != NULL) {
		int fd;

		path[strcspn(path, "\n")] = '\0';
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST))
			die("cannot load %s: %s", path, strerror(errno));
		close(fd);
	}
	fclose(file);
}

/* ext4: magic 0xEF53 at 0x38, label at 0x78; EROFS: magic 0xE0F5E1E2 at 0, UUID at 0x30 of the superblock. */
static bool is_root(const unsigned char *sb, const struct boot_config *config)
{
	char label[17] = { 0 };

	memcpy(label, sb + 0x78, 16);
	return memcmp(sb + 0x38, "\x53\xef", 2) == 0 && strcmp(label, config->root_label) == 0;
}

static bool is_tools(const unsigned char *sb, const struct boot_config *config)
{
	return memcmp(sb, "\xe2\xe1\xf5\xe0", 4) == 0 && memcmp(sb + 0x30, config->tools_uuid, 16) == 0;
}

static void look_at(const char *name, const struct boot_config *config, struct drives *drives)
{
	unsigned char sb[256];
	char path[64];
	int fd, read_only = 0;

	if (snprintf(path, sizeof path, "/dev/%s", name) >= (int)sizeof path)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* The tools drive is the platform's, so a drive that the guest can write is never taken for it. */
	if (ioctl(fd, BLKROGET, &read_only) == 0 &&
	    pread(fd, sb, sizeof sb, SUPERBLOCK_OFFSET) == (ssize_t)sizeof sb) {
		if (!read_only && is_root(sb, config) && (!drives->root[0] || strcmp(path, drives->root) < 0))
			strcpy(drives->root, path);
		if (read_only && is_tools(sb, config))
			strcpy(drives->tools, path);
	}
	close(fd);
}

void find_drives(const struct boot_config *config, struct drives *drives)
{
	const struct timespec pause = { .tv_sec = 0, .tv_nsec = 2000000 };
	struct timespec now, start;

	memset(drives, 0, sizeof *drives);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		DIR *blocks = opendir("/sys/block");
		struct dirent *entry;

		while (blocks != NULL && (entry = readdir(blocks)) != NULL)
			if (entry->d_name[0] != '.')
				look_at(entry->d_name, config, drives);
		if (blocks != NULL)
			closedir(blocks);
		if (drives->root[0] && drives->tools[0])
			return;
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < DRIVE_WAIT_SECONDS);
	die("no drive %s within %d seconds", drives->root[0] ? "has the UUID of the tools" : "has the label of the root",
	    DRIVE_WAIT_SECONDS);
}
