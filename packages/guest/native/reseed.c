/*
 * reseed < SEED   Mixes 32..512 bytes of the host's entropy into the kernel's generator, credits them and makes it
 * reseed at once, so that clones of one snapshot part ways. Exit code 0 only when all three steps were done (random(4)).
 */
#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SEED_MIN 32
#define SEED_MAX 512

int reseed_main(int argc, char **argv)
{
	struct {
		struct rand_pool_info info;
		unsigned char bytes[SEED_MAX + 1];
	} pool;
	size_t size = 0;
	int device, failed;

	(void)argv;
	if (argc != 1) {
		fputs("usage: reseed < SEED\n", stderr);
		return EXIT_USAGE;
	}
	for (;;) {
		ssize_t n = read(STDIN_FILENO, pool.bytes + size, sizeof pool.bytes - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			perror("reseed: stdin");
			return 1;
		}
		if (n == 0)
			break;
		size += (size_t)n;
		if (size > SEED_MAX)
			break;
	}
	if (size < SEED_MIN || size > SEED_MAX) {
		fputs("reseed: the seed must have 32..512 bytes\n", stderr);
		return EXIT_USAGE;
	}
	device = open("/dev/urandom", O_RDWR | O_CLOEXEC);
	if (device < 0) {
		perror("reseed: /dev/urandom");
		return 1;
	}
	pool.info.entropy_count = (int)size * 8;
	pool.info.buf_size = (int)size;
	failed = write(device, pool.bytes, size) != (ssize_t)size || ioctl(device, RNDADDENTROPY, &pool) != 0 ||
		 ioctl(device, RNDRESEEDCRNG) != 0;
	if (failed)
		perror("reseed");
	explicit_bzero(&pool, sizeof pool);
	return failed ? 1 : 0;
}
