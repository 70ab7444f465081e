/*
 * The guest of the VMM tests: PID 1 of an initramfs. It prints its drives, answers every request on the port of envd,
 * and misbehaves as its kernel command line says: t.flood=BYTES prints that much, t.poweroff ends, t.hang never answers.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PORT 49983
#define MAX_CONNECTIONS 16
#define ANSWER "HTTP/1.1 204 No Content\r\n\r\n"

static void read_line(const char *path, char *to, size_t size)
{
	FILE *file = fopen(path, "re");

	to[0] = '\0';
	if (file == NULL)
		return;
	if (fgets(to, (int)size, file) == NULL)
		to[0] = '\0';
	to[strcspn(to, "\n")] = '\0';
	fclose(file);
}

static void load_modules(void)
{
	char path[256];
	FILE *file = fopen("/modules", "re");

	while (file != NULL && fgets(path, sizeof path, file) != NULL) {
		path[strcspn(path, "\n")] = '\0';
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, "", 0) != 0)
			printf("cannot load %s\n", path);
		close(fd);
	}
	if (file != NULL)
		fclose(file);
}

/* One line a drive; the boot id goes to the start of each that can be written. */
static void use_drives(const char *boot_id)
{
	struct dirent *entry;
	DIR *blocks = opendir("/sys/block");
	int count = 0;

	while (blocks != NULL && (entry = readdir(blocks)) != NULL) {
		char path[300], serial[64], read_only[8], sectors[32], block[512] = { 0 };

		if (strncmp(entry->d_name, "vd", 2) != 0)
			continue;
		count++;
		snprintf(path, sizeof path, "/sys/block/%s/serial", entry->d_name);
		read_line(path, serial, sizeof serial);
		snprintf(path, sizeof path, "/sys/block/%s/ro", entry->d_name);
		read_line(path, read_only, sizeof read_only);
		snprintf(path, sizeof path, "/sys/block/%s/size", entry->d_name);
		read_line(path, sectors, sizeof sectors);
		snprintf(path, sizeof path, "/dev/%s", entry->d_name);
		int fd = open(path, (read_only[0] == '1' ? O_RDONLY : O_RDWR) | O_CLOEXEC);
		if (fd < 0 || pread(fd, block, sizeof block, 0) != sizeof block)
			printf("cannot read %s\n", path);
		block[40] = '\0';
		printf("drive %s serial=%s ro=%s sectors=%s holds=%s\n", entry->d_name, serial, read_only, sectors, block);
		if (read_only[0] == '0') {
			strcpy(block, boot_id);
			if (pwrite(fd, block, sizeof block, 0) != sizeof block || fsync(fd) != 0)
				printf("cannot write %s\n", path);
		}
		close(fd);
	}
	printf("%d drives\n", count);
}

static void bring_up(const char *link, const char *address, const char *netmask)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq ifr = { 0 };
	struct sockaddr_in in = { .sin_family = AF_INET };

	strcpy(ifr.ifr_name, link);
	inet_aton(address, &in.sin_addr);
	memcpy(&ifr.ifr_addr, &in, sizeof in);
	if (ioctl(fd, SIOCSIFADDR, &ifr) != 0)
		printf("no address for %s\n", link);
	inet_aton(netmask, &in.sin_addr);
	memcpy(&ifr.ifr_addr, &in, sizeof in);
	ioctl(fd, SIOCSIFNETMASK, &ifr);
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	ioctl(fd, SIOCSIFFLAGS, &ifr);
	close(fd);
}

static void serve(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct pollfd fds[1 + MAX_CONNECTIONS];
	int count = 1, one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	char request[4096];

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (struct sockaddr *)&any, sizeof any) != 0 || listen(listener, 16) != 0)
		printf("cannot listen\n");
	fds[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
	printf("ready\n");
	for (;;) {
		poll(fds, (nfds_t)count, -1);
		for (int i = count - 1; i > 0; i--) {
			if (fds[i].revents == 0)
				continue;
			if (read(fds[i].fd, request, sizeof request) > 0 &&
			    write(fds[i].fd, ANSWER, strlen(ANSWER)) > 0)
				continue;
			close(fds[i].fd);
			fds[i] = fds[--count];
		}
		if (fds[0].revents != 0 && count <= MAX_CONNECTIONS)
			fds[count++] = (struct pollfd){ .fd = accept(listener, NULL, NULL), .events = POLLIN };
	}
}

static void flood(long bytes)
{
	char line[65];

	memset(line, '.', sizeof line);
	line[63] = '\n';
	for (long i = 0; i < bytes; i += 64) {
		int digits = snprintf(line, sizeof line, "flood %ld", i / 64);

		line[digits] = '.';
		if (write(1, line, 64) < 0)
			return;
	}
	printf("last words\n");
}

int main(void)
{
	char command_line[4096], boot_id[64];
	const char *option;

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	read_line("/proc/cmdline", command_line, sizeof command_line);
	read_line("/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id);
	printf("boot_id %s\n", boot_id);
	load_modules();
	use_drives(boot_id);
	bring_up("lo", "127.0.0.1", "255.0.0.0");
	bring_up("eth0", "169.254.0.21", "255.255.255.252");
	option = strstr(command_line, "t.flood=");
	if (option != NULL)
		flood(atol(option + strlen("t.flood=")));
	if (strstr(command_line, "t.poweroff") != NULL)
		reboot(RB_POWER_OFF);
	if (strstr(command_line, "t.hang") != NULL)
		for (;;)
			pause();
	serve();
}
