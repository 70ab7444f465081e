/*
 * watch   Watches files and folders (inotify(7)) until stdin ends.
 *
 * Requests on stdin end with a NUL byte: "MASK PATH" begins to watch, "0 WATCH" ends it. On stdout are the kernel's
 * records as they are (struct inotify_event). The answer to each request is one of them as well, with an empty mask and
 * the number of the watch, or a negative error number, in its wd. All that happened before a request comes before its
 * answer, so that a request that does nothing ("0 0") tells when everything up to now has been seen. The exit code is the
 * error number when the kernel has no inotify instance to give.
 */
#define _GNU_SOURCE
#include "native.h"
#include "records.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Events are gathered for so many milliseconds: whoever makes many gets more done when they are passed on together. */
#define GATHER_MS 10

static int pass_events(int inotify)
{
	char bytes[65536];
	int waiting;

	/* no more than waits now: somebody may make changes without an end */
	if (ioctl(inotify, FIONREAD, &waiting) != 0)
		return -1;
	while (waiting > 0) {
		ssize_t size = read(inotify, bytes, sizeof bytes);

		if (size <= 0 || write_all(1, bytes, (size_t)size) != 0)
			return -1;
		waiting -= (int)size;
	}
	return 0;
}

static int serve(int inotify, const char *request)
{
	struct inotify_event answer = { 0 };
	char *argument;
	uint32_t mask = (uint32_t)strtoul(request, &argument, 10);

	if (*argument++ != ' ' || pass_events(inotify) != 0)
		return -1;
	answer.wd = mask == 0 ? inotify_rm_watch(inotify, atoi(argument)) : inotify_add_watch(inotify, argument, mask);
	if (answer.wd < 0)
		answer.wd = -errno;
	return write_all(1, (const char *)&answer, sizeof answer);
}

int watch_main(int argc, char **argv)
{
	static struct record_reader input;
	int inotify;

	(void)argv;
	if (argc != 1) {
		fputs("usage: watch < REQUESTS\n", stderr);
		return EXIT_USAGE;
	}
	inotify = inotify_init1(IN_CLOEXEC);
	if (inotify < 0)
		return errno;
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = inotify, .events = POLLIN },
		};

		if (poll(fds, 2, -1) < 0 || (fds[0].revents == 0 && poll(fds, 1, GATHER_MS) < 0))
			return 1;
		if (fds[1].revents != 0 && pass_events(inotify) != 0)
			return 1;
		if (fds[0].revents != 0 && fill_records(&input) <= 0)
			return 0;
		while (has_record(&input))
			if (serve(inotify, read_record(&input)) != 0)
				return 1;
	}
}
