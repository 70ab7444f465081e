/*
 * watch   Watches files and folders (inotify(7)) until stdin ends. Records end with a NUL byte.
 *
 * On stdin:    add MASK PATH                     MASK is decimal; symbolic links are followed
 *              remove WATCH
 * On stdout:   added WATCH PATH                  in the order of the requests, before any event of it
 *              failed ERRNO PATH
 *              event WATCH MASK COOKIE NAME      NAME is empty for the watched thing itself
 *              overflow                          events were lost, anything may have changed
 */
#define _GNU_SOURCE
#include "native.h"
#include "records.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

static int answer(const char *format, int number, const char *path)
{
	char text[RECORD_MAX + 32];
	int length = snprintf(text, sizeof text, format, number, path);

	return write_all(1, text, (size_t)length + 1);
}

static int serve_request(int inotify, const char *request)
{
	char *path;
	unsigned long mask;
	int watch;

	if (strncmp(request, "remove ", 7) == 0) {
		inotify_rm_watch(inotify, atoi(request + 7));
		return 0;
	}
	if (strncmp(request, "add ", 4) != 0)
		return -1;
	mask = strtoul(request + 4, &path, 10);
	if (*path++ != ' ')
		return -1;
	watch = inotify_add_watch(inotify, path, (uint32_t)mask);
	return watch < 0 ? answer("failed %d %s", errno, path) : answer("added %d %s", watch, path);
}

static int pass_events(int inotify)
{
	char bytes[65536] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t size = read(inotify, bytes, sizeof bytes);

	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	for (char *next = bytes; next < bytes + size;) {
		const struct inotify_event *event = (const struct inotify_event *)next;
		char text[512];
		int length;

		next += sizeof *event + event->len;
		if (event->mask & IN_Q_OVERFLOW)
			length = snprintf(text, sizeof text, "overflow");
		else
			length = snprintf(text, sizeof text, "event %d %u %u %s", event->wd, event->mask,
					  event->cookie, event->len > 0 ? event->name : "");
		if (write_all(1, text, (size_t)length + 1) != 0)
			return -1;
	}
	return 0;
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
	inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (inotify < 0) {
		perror("watch: inotify_init1");
		return 1;
	}
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = inotify, .events = POLLIN },
		};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return 1;
		if (fds[1].revents != 0 && pass_events(inotify) != 0)
			return 1;
		if (fds[0].revents == 0)
			continue;
		if (fill_records(&input) <= 0)
			return 0;
		while (has_record(&input))
			if (serve_request(inotify, read_record(&input)) != 0)
				return 1;
	}
}
