/* Chooses the applet: PID 1 is always init, everything else is named by the first argument. */
#define _GNU_SOURCE
#include "native.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	/* becomes a program of the user, and so leaves envd's cgroup */
	bool for_user;
} applets[] = {
	{ "spawn", spawn_main, true },
	{ "xattr", xattr_main, false },
	{ "watch", watch_main, false },
	{ "clock", clock_main, false },
	{ "restore", restore_main, false },
	{ "mount", mount_main, false },
	{ "sync", sync_main, false },
};

/* Without cgroups, and on the host, there is no such file and nothing to do. */
static void join_user_cgroup(void)
{
	int fd = open(USER_CGROUP "/cgroup.procs", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* where it fails, the program runs with envd's share, and its own output stays clean */
	(void)!write(fd, "0", 1);
	close(fd);
}

int main(int argc, char **argv)
{
	if (getpid() == 1 || (argc > 0 && strcmp(argv[0], "/init") == 0))
		return init_main(argc, argv);
	for (size_t i = 0; argc > 1 && i < sizeof applets / sizeof applets[0]; i++) {
		if (strcmp(argv[1], applets[i].name) != 0)
			continue;
		if (applets[i].for_user)
			join_user_cgroup();
		return applets[i].main(argc - 1, argv + 1);
	}
	fputs("usage: aenv-guest spawn|xattr|watch|clock|restore|mount|sync ...\n", stderr);
	return EXIT_USAGE;
}
