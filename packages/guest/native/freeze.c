/* Stops programs by the freezer of cgroups (cgroup-v2, "cgroup.freeze"), wherever below the root their users put them. */
#define _GNU_SOURCE
#include "native.h"
#include "restore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"

/* A program that is in the middle of a system call stops at its end. */
#define ATTEMPTS 500
#define PAUSE_NS 1000000

static int open_file(int root, const char *group, const char *name, int flags)
{
	char path[512];

	if (snprintf(path, sizeof path, "%s/%s", group, name) >= (int)sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return openat(root, path, flags | O_CLOEXEC);
}

static int request(int root, const char *group, bool frozen)
{
	int fd = open_file(root, group, "cgroup.freeze", O_WRONLY), result = 0;

	if (fd < 0)
		return errno;
	if (write(fd, frozen ? "1" : "0", 1) != 1)
		result = errno;
	close(fd);
	return result;
}

static int await_frozen(int root, const char *group)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int fd = open_file(root, group, "cgroup.events", O_RDONLY), result = ETIMEDOUT;

	if (fd < 0)
		return errno;
	for (int i = 0; i < ATTEMPTS && result == ETIMEDOUT; i++) {
		char text[256];
		ssize_t size = pread(fd, text, sizeof text - 1, 0);

		if (size < 0) {
			result = errno;
			break;
		}
		text[size] = '\0';
		if (strstr(text, "frozen 1") != NULL)
			result = 0;
		else
			nanosleep(&pause, NULL);
	}
	close(fd);
	return result;
}

int set_frozen(bool frozen)
{
	static const char own[] = "aenv.envd";
	DIR *root = opendir(ROOT);
	struct dirent *entry;
	int result = ENOENT;

	if (root == NULL)
		return errno;
	/* on a host, and where there are no cgroups, nothing may be stopped */
	if (access(ENVD_CGROUP, F_OK) != 0) {
		closedir(root);
		return ENOENT;
	}
	/* all are asked first and waited for afterwards: they stop side by side */
	for (int round = 0; round < (frozen ? 2 : 1); round++) {
		for (rewinddir(root); (entry = readdir(root)) != NULL;) {
			int error;

			if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || strcmp(entry->d_name, own) == 0)
				continue;
			error = round == 0 ? request(dirfd(root), entry->d_name, frozen) :
					     await_frozen(dirfd(root), entry->d_name);
			/* one that is gone by now has nothing to stop */
			if (error == ENOENT || error == ENODEV)
				continue;
			if (error != 0 || result == ENOENT)
				result = error;
		}
	}
	closedir(root);
	return result;
}
