/*
 * restore   Does for a guest that continues a captured one what JavaScript has no calls for, until stdin ends. One process
 * serves all requests: to start one at that moment would take an emulated guest longer than all the steps together.
 * Records end with a NUL byte. Requests ("|" stands between records):
 *
 *   clock SECONDS[.NANOSECONDS] AT PORT
 *                                    steps CLOCK_REALTIME to what it is by now, if it was this when the kernel received
 *                                    the call that came by envd's connection with this port of the host; where that is
 *                                    not known, when CLOCK_MONOTONIC was AT nanoseconds. Answered with "waited | MS" as
 *                                    well, what lay between
 *   reseed | HEX                     mixes 32..512 bytes of the host's entropy into the kernel's generator, credits them
 *                                    and makes it reseed at once, so that clones of one snapshot part ways (random(4))
 *   disconnect PORT                  breaks all TCP connections but those within the guest and that of envd with this port
 *                                    of the host
 *   freeze                           stops all programs of the user before a capture
 *   thaw                             lets them go on
 *
 * Each is answered with an error number, 0 for none. Programs that are not let go on are after a while all the same: the
 * one who should have asked may be gone.
 */
#define _GNU_SOURCE
#include "native.h"
#include "records.h"
#include "restore.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/random.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SEED_MIN 32
#define SEED_MAX 512

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

/* Longer than a host waits for a guest that it restores, by the guest's own monotonic clock. */
#define FROZEN_MAX_MS 60000

static int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Digits, at most `most` of them. Returns how many there were. */
static int parse_digits(const char **text, int most, int64_t *value)
{
	int count = 0;

	for (*value = 0; **text >= '0' && **text <= '9' && count <= most; (*text)++, count++)
		*value = *value * 10 + (**text - '0');
	return count > most ? 0 : count;
}

/* "1764429000.012345678 73000000000 40312"; the fraction is optional and has 1..9 digits. `waited` is in nanoseconds. */
static int step_clock(const char *text, int64_t *waited)
{
	int64_t seconds, fraction = 0, at, port, now, age, received;
	struct timespec time;

	if (parse_digits(&text, 12, &seconds) == 0)
		return EINVAL;
	if (*text == '.') {
		int digits;

		text++;
		digits = parse_digits(&text, 9, &fraction);
		if (digits == 0)
			return EINVAL;
		for (; digits < 9; digits++)
			fraction *= 10;
	}
	if (*text++ != ' ' || parse_digits(&text, 18, &at) == 0)
		return EINVAL;
	if (*text++ != ' ' || parse_digits(&text, 5, &port) == 0 || *text != '\0' || port > 65535)
		return EINVAL;
	/* what a signed number of nanoseconds holds is more than two centuries away */
	if (seconds > INT64_MAX / NS_PER_S / 2)
		return EINVAL;
	received = ms_since_received((unsigned)port) * NS_PER_MS;
	age = monotonic_ns() - at;
	*waited = received > age ? received - age : 0;
	now = seconds * NS_PER_S + fraction + age + *waited;
	if (now < 0)
		return EINVAL;
	time.tv_sec = now / NS_PER_S;
	time.tv_nsec = now % NS_PER_S;
	return clock_settime(CLOCK_REALTIME, &time) == 0 ? 0 : errno;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int reseed(char *hex)
{
	struct {
		struct rand_pool_info info;
		unsigned char bytes[SEED_MAX];
	} pool;
	size_t length = strlen(hex), size = length / 2;
	int device, result = 0;

	if (length % 2 != 0 || size < SEED_MIN || size > SEED_MAX || strspn(hex, "0123456789abcdef") != length)
		return EINVAL;
	for (size_t i = 0; i < size; i++)
		pool.bytes[i] = (unsigned char)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
	device = open("/dev/urandom", O_RDWR | O_CLOEXEC);
	if (device < 0)
		return errno;
	pool.info.entropy_count = (int)size * 8;
	pool.info.buf_size = (int)size;
	if (write(device, pool.bytes, size) != (ssize_t)size || ioctl(device, RNDADDENTROPY, &pool) != 0 ||
	    ioctl(device, RNDRESEEDCRNG) != 0)
		result = errno;
	close(device);
	explicit_bzero(&pool, sizeof pool);
	explicit_bzero(hex, length);
	return result;
}

static int serve_disconnect(const char *text)
{
	int64_t port;

	if (parse_digits(&text, 5, &port) == 0 || *text != '\0' || port > 65535)
		return EINVAL;
	return disconnect((unsigned)port);
}

int restore_main(int argc, char **argv)
{
	static struct record_reader input;
	static char output[4096];
	int64_t thaw_at = 0;

	(void)argv;
	if (argc != 1) {
		fputs("usage: restore < REQUESTS\n", stderr);
		return EXIT_USAGE;
	}
	setvbuf(stdout, output, _IOFBF, sizeof output);
	for (;;) {
		struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
		int64_t left = thaw_at == 0 ? -1 : (thaw_at - monotonic_ns()) / NS_PER_MS;
		int result;
		char *record;

		if (!has_record(&input)) {
			if (thaw_at != 0 && poll(&in, 1, left < 0 ? 0 : (int)left) == 0) {
				set_frozen(false);
				thaw_at = 0;
			}
			if (thaw_at != 0 && in.revents == 0)
				continue;
		}
		record = read_record(&input);
		if (record == NULL)
			break;
		if (strncmp(record, "clock ", 6) == 0) {
			int64_t waited = 0;

			result = step_clock(record + 6, &waited);
			if (result == 0 && fprintf(stdout, "waited%c%" PRId64 "%c", 0, waited / NS_PER_MS, 0) < 0)
				break;
		} else if (strcmp(record, "reseed") == 0) {
			record = read_record(&input);
			if (record == NULL)
				break;
			result = reseed(record);
		} else if (strncmp(record, "disconnect ", 11) == 0) {
			result = serve_disconnect(record + 11);
		} else if (strcmp(record, "freeze") == 0) {
			result = set_frozen(true);
			thaw_at = monotonic_ns() + FROZEN_MAX_MS * NS_PER_MS;
		} else if (strcmp(record, "thaw") == 0) {
			result = set_frozen(false);
			thaw_at = 0;
		} else {
			return EXIT_USAGE;
		}
		/* the answers to requests that came together go together */
		if (fprintf(stdout, "%d", result) < 0 || fputc('\0', stdout) == EOF ||
		    (!has_record(&input) && fflush(stdout) != 0))
			break;
	}
	if (thaw_at != 0)
		set_frozen(false);
	return 0;
}
