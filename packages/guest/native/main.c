/* Chooses the applet: PID 1 is always init, everything else is named by the first argument. */
#define _GNU_SOURCE
#include "native.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} applets[] = {
	{ "spawn", spawn_main },
	{ "xattr", xattr_main },
	{ "watch", watch_main },
	{ "clock", clock_main },
	{ "restore", restore_main },
	{ "mount", mount_main },
	{ "sync", sync_main },
};

int main(int argc, char **argv)
{
	if (getpid() == 1 || (argc > 0 && strcmp(argv[0], "/init") == 0))
		return init_main(argc, argv);
	for (size_t i = 0; argc > 1 && i < sizeof applets / sizeof applets[0]; i++) {
		if (strcmp(argv[1], applets[i].name) == 0)
			return applets[i].main(argc - 1, argv + 1);
	}
	fputs("usage: aenv-guest spawn|xattr|watch|clock|restore|mount|sync ...\n", stderr);
	return EXIT_USAGE;
}
