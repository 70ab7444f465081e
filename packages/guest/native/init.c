/*
 * init: PID 1 of every guest. From the initramfs it loads the modules, finds root and tools drive, mounts them, moves
 * into the root and keeps envd running. The root file system is a stranger's: nothing of it is needed, executed or
 * trusted here; paths that links could lead elsewhere are looked at before they are used.
 */
#define _GNU_SOURCE
#include "native.h"
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

_Noreturn void power_off(void)
{
	sync();
	tcdrain(STDERR_FILENO);
	/* A VMM that is told not to reboot ends on a reset as well; Firecracker knows nothing else. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

_Noreturn void die(const char *format, ...)
{
	char line[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (n >= 0)
		dprintf(STDERR_FILENO, "aenv-init: %s\n", line);
	power_off();
}

bool write_text(const char *path, const char *text)
{
	ssize_t size = (ssize_t)strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, text, (size_t)size) == size;
	close(fd);
	return ok;
}

static void must_mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)
{
	if (mount(source, target, type, flags, data) != 0)
		die("cannot mount %s (%s) on %s: %s (errno %d)", source, type, target, strerror(errno), errno);
}

/* The kernel opens /dev/console for 0, 1 and 2 when it can; nothing else may land on these numbers. */
static void open_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* Makes sure that a name in the current folder is a real folder; a link or a file of that name gives way. */
static void own_folder(const char *name)
{
	struct stat st;

	if (lstat(name, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return;
		if (unlink(name) != 0)
			die("cannot replace /%s in the root: %s", name, strerror(errno));
	}
	if (mkdir(name, 0755) != 0)
		die("cannot make /%s in the root: %s", name, strerror(errno));
}

static void mount_root(const char *device)
{
	static const char *const folders[] = { "proc", "sys", "dev", "run" };

	must_mount(device, "/root", "ext4", MS_NOATIME, "discard,noinit_itable");
	if (chdir("/root") != 0)
		die("cannot enter the root: %s", strerror(errno));
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		own_folder(folders[i]);
	must_mount("tmpfs", "run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=25%");
	must_mount("/proc", "proc", NULL, MS_MOVE, NULL);
	must_mount("/sys", "sys", NULL, MS_MOVE, NULL);
	must_mount("/dev", "dev", NULL, MS_MOVE, NULL);
}

/* Leaves the initramfs, whose memory is given back; the current folder becomes the root. */
static void switch_root(void)
{
	FILE *list = fopen("/modules", "re");
	char line[256];

	while (list != NULL && fgets(line, sizeof line, list) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		unlink(line);
	}
	if (list != NULL)
		fclose(list);
	unlink("/modules");
	unlink("/init");
	if (mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 || chdir("/") != 0)
		die("cannot switch to the root: %s", strerror(errno));
}

static void mount_platform(const struct drives *drives)
{
	if (mkdir(RUN_DIR, 0755) != 0 || mkdir(TOOLS_DIR, 0755) != 0)
		die("cannot make %s: %s", TOOLS_DIR, strerror(errno));
	must_mount(drives->tools, TOOLS_DIR, "erofs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOATIME, NULL);
	mkdir("/dev/pts", 0755);
	must_mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=0620,ptmxmode=0666");
	mkdir("/dev/shm", 01777);
	must_mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	mkdir("/dev/mqueue", 01777);
	mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
	if (mkdir("/run/lock", 0755) == 0)
		chmod("/run/lock", 01777);
	if (mkdir("/tmp", 0755) == 0)
		chmod("/tmp", 01777);
}

/* Under pressure envd keeps its share of processor and memory. Without cgroups it runs all the same. */
static void set_up_cgroups(void)
{
	if (mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
		return;
	write_text("/sys/fs/cgroup/cgroup.subtree_control", "+cpu +memory +pids");
	mkdir(ENVD_CGROUP, 0755);
	mkdir(USER_CGROUP, 0755);
	write_text(ENVD_CGROUP "/cpu.weight", "1000");
	write_text(ENVD_CGROUP "/memory.low", "100663296");
}

/* The kernel's own limit of open files is too low for servers and watchers. */
static void set_limits(void)
{
	const struct rlimit files = { .rlim_cur = 1024, .rlim_max = 65536 };

	setrlimit(RLIMIT_NOFILE, &files);
}

static void set_sysctls(void)
{
	/* unprivileged ping; watches for development servers, whose default follows the small memory */
	write_text("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
	write_text("/proc/sys/fs/inotify/max_user_watches", "524288");
	write_text("/proc/sys/fs/inotify/max_user_instances", "1024");
	/* there are no modules that a program of the root could load */
	write_text("/proc/sys/kernel/modprobe", "\n");
}

static bool has_content(const char *path, const char *text)
{
	char found[256];
	size_t size = strlen(text);
	struct stat st;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool same = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == (off_t)size &&
		    size <= sizeof found && read(fd, found, size) == (ssize_t)size && memcmp(found, text, size) == 0;

	if (fd >= 0)
		close(fd);
	return same;
}

/*
 * A file of the root with this content. Whatever else had its name before (a link, a pipe) gives way and is neither
 * followed nor opened for writing; a root where nothing can be made is none of init's business.
 */
static void provide_file(const char *path, const char *text)
{
	int fd;

	if (has_content(path, text))
		return;
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	dprintf(fd, "%s", text);
	close(fd);
}

static void write_names(const struct boot_config *config)
{
	const unsigned char *gateway = (const unsigned char *)&config->gateway;
	struct stat st;
	char text[64];

	mkdir("/etc", 0755);
	if (config->has_net) {
		snprintf(text, sizeof text, "nameserver %d.%d.%d.%d\n", gateway[0], gateway[1], gateway[2], gateway[3]);
		provide_file("/etc/resolv.conf", text);
	}
	if (lstat("/etc/hosts", &st) != 0)
		provide_file("/etc/hosts", "127.0.0.1 localhost\n");
}

int init_main(int argc, char **argv)
{
	struct boot_config config;
	struct drives drives;

	(void)argc;
	(void)argv;
	umask(0);
	mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755");
	open_standard_streams();
	must_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	must_mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	read_config(&config);
	load_modules("/modules");
	find_drives(&config, &drives);
	set_up_network(&config);
	mount_root(drives.root);
	switch_root();
	mount_platform(&drives);
	set_up_cgroups();
	set_sysctls();
	set_limits();
	umask(022);
	write_names(&config);
	supervise();
}
