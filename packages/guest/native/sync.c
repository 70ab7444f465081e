/*
 * sync   writes all that file systems have in memory to their disks, and waits for it (sync(2))
 */
#define _GNU_SOURCE
#include "native.h"

#include <stdio.h>
#include <unistd.h>

int sync_main(int argc, char **argv)
{
	(void)argv;
	if (argc != 1) {
		fputs("usage: sync\n", stderr);
		return EXIT_USAGE;
	}
	sync();
	return 0;
}
