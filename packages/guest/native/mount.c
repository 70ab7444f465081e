/*
 * mount DRIVE TARGET ro|rw        Mounts the ext4 file system of a drive (a path below /dev) on a folder.
 * mount FOLDER TARGET bind        Shows a folder in a second place.
 * Exit code 0 when it was done, else 1 and one line that tells why. Images have no mount(8) that could be relied on.
 */
#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

int mount_main(int argc, char **argv)
{
	int failed;

	if (argc != 4) {
		fputs("usage: mount DRIVE TARGET ro|rw, mount FOLDER TARGET bind\n", stderr);
		return EXIT_USAGE;
	}
	/* Nothing is written to a drive that is read-only, also no journal is replayed: ours are written clean. */
	if (strcmp(argv[3], "ro") == 0)
		failed = mount(argv[1], argv[2], "ext4", MS_RDONLY | MS_NOATIME, "noload");
	else if (strcmp(argv[3], "rw") == 0)
		failed = mount(argv[1], argv[2], "ext4", MS_NOATIME, "discard,noinit_itable");
	else if (strcmp(argv[3], "bind") == 0)
		failed = mount(argv[1], argv[2], NULL, MS_BIND, NULL);
	else {
		fputs("mount: the mode is ro, rw or bind\n", stderr);
		return EXIT_USAGE;
	}
	if (failed != 0)
		fprintf(stderr, "%s on %s: %s\n", argv[1], argv[2], strerror(errno));
	return failed != 0 ? 1 : 0;
}
