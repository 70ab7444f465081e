/*
 * What spawn --wait is told on its control socket: three numbers of 32 bits in the byte order of the machine, the size of
 * what follows, the number of arguments and the number of variables, and then as many strings, each with its NUL byte: the
 * arguments as on a command line, beginning with the name of the applet, and the environment.
 */
#define _GNU_SOURCE
#include "spawn.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More than execve(2) takes with any limit of the stack: a quarter of it, 6 MiB at most. */
#define REQUEST_MAX (16u << 20)

/* 0 at the end of the input before all was there */
static int read_whole(void *bytes, size_t size)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = read(CONTROL_FD, (char *)bytes + have, size - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		have += (size_t)n;
	}
	return 1;
}

/* Points at `count` strings, one after the other; NULL when there are fewer. */
static char *take_strings(char *next, const char *end, char **strings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *last = memchr(next, '\0', (size_t)(end - next));

		if (last == NULL)
			return NULL;
		strings[i] = next;
		next = last + 1;
	}
	strings[count] = NULL;
	return next;
}

int read_request(struct request *request)
{
	uint32_t head[3];
	size_t size, arguments, variables;
	char *bytes, *rest;

	if (!read_whole(head, sizeof head))
		return -1;
	size = head[0];
	arguments = head[1];
	variables = head[2];
	/* each string has its NUL byte */
	if (size > REQUEST_MAX || arguments == 0 || arguments > size || variables > size - arguments)
		return E2BIG;
	bytes = malloc(size);
	request->argv = calloc(arguments + 1, sizeof *request->argv);
	request->environment = calloc(variables + 1, sizeof *request->environment);
	if (bytes == NULL || request->argv == NULL || request->environment == NULL)
		return ENOMEM;
	if (!read_whole(bytes, size))
		return -1;
	rest = take_strings(bytes, bytes + size, request->argv, arguments);
	if (rest != NULL)
		rest = take_strings(rest, bytes + size, request->environment, variables);
	if (rest != bytes + size)
		return EINVAL;
	request->argc = (int)arguments;
	return 0;
}
