/* clock tsc-khz   Prints the rate of this machine's TSC in kHz; it is run on the host. */
#define _GNU_SOURCE
#include "native.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>

/* A TSC value and the time that belongs to it: of many pairs the one that was read with the least delay. */
static void sample(uint64_t *tsc, int64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 64; i++) {
		struct timespec now;
		uint64_t before = __rdtsc(), after;

		clock_gettime(CLOCK_MONOTONIC_RAW, &now);
		after = __rdtsc();
		if (after - before < best) {
			best = after - before;
			*tsc = before + best / 2;
			*ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
		}
	}
}

static int tsc_khz(void)
{
	const struct timespec pause = { .tv_sec = 0, .tv_nsec = 250000000 };
	uint64_t tsc0, tsc1;
	int64_t ns0, ns1;

	sample(&tsc0, &ns0);
	nanosleep(&pause, NULL);
	sample(&tsc1, &ns1);
	if (ns1 <= ns0 || tsc1 <= tsc0)
		return 1;
	printf("%llu\n", (unsigned long long)((double)(tsc1 - tsc0) * 1e6 / (double)(ns1 - ns0) + 0.5));
	return fflush(stdout) == 0 ? 0 : 1;
}
#else
static int tsc_khz(void)
{
	fputs("clock: this processor has no TSC\n", stderr);
	return 1;
}
#endif

int clock_main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "tsc-khz") == 0)
		return tsc_khz();
	fputs("usage: clock tsc-khz\n", stderr);
	return EXIT_USAGE;
}
