/*
 * xattr   Serves extended attributes below "user." (xattr(7)) until stdin ends. Records end with a NUL byte; values are
 * in hexadecimal, because they may hold any byte. Links are not followed. Requests, and their answers in order ("|" stands
 * between records):
 *
 *   get PATH                 COUNT, then COUNT times NAME | VALUE
 *   set PATH | NAME | VALUE  0
 *   remove PATH | NAME       0
 *
 * A number below 0 is -ERRNO: it failed, and nothing follows.
 */
#define _GNU_SOURCE
#include "native.h"
#include "records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define VALUE_MAX 65536

static const char digits[] = "0123456789abcdef";

static int answer_number(int number)
{
	char text[16];
	int length = snprintf(text, sizeof text, "%d", number);

	return write_all(1, text, (size_t)length + 1);
}

static int is_ours(const char *name)
{
	return strncmp(name, "user.", 5) == 0;
}

static int get(const char *path)
{
	static char names[VALUE_MAX], value[VALUE_MAX], hex[2 * VALUE_MAX + 1];
	ssize_t size = llistxattr(path, names, sizeof names);
	int count = 0;

	/* a file system without attributes has none */
	if (size < 0)
		return answer_number(errno == ENOTSUP ? 0 : -errno);
	for (char *name = names; name < names + size; name += strlen(name) + 1)
		count += is_ours(name);
	if (answer_number(count) != 0)
		return -1;
	for (char *name = names; name < names + size; name += strlen(name) + 1) {
		ssize_t length;

		if (!is_ours(name))
			continue;
		/* gone meanwhile: the count has been said, so it is empty */
		length = lgetxattr(path, name, value, sizeof value);
		if (length < 0)
			length = 0;
		for (ssize_t i = 0; i < length; i++) {
			hex[2 * i] = digits[(unsigned char)value[i] >> 4];
			hex[2 * i + 1] = digits[(unsigned char)value[i] & 15];
		}
		hex[2 * length] = '\0';
		if (write_all(1, name, strlen(name) + 1) != 0 || write_all(1, hex, 2 * (size_t)length + 1) != 0)
			return -1;
	}
	return 0;
}

static int nibble(char c)
{
	const char *found = c == '\0' ? NULL : strchr(digits, c);

	return found == NULL ? -1 : (int)(found - digits);
}

/* Decodes in place. The length, or -1. */
static ssize_t from_hex(char *text)
{
	size_t length = strlen(text);

	if (length % 2 != 0)
		return -1;
	for (size_t i = 0; i < length; i += 2) {
		int high = nibble(text[i]), low = nibble(text[i + 1]);

		if (high < 0 || low < 0)
			return -1;
		text[i / 2] = (char)(high << 4 | low);
	}
	return (ssize_t)(length / 2);
}

int xattr_main(int argc, char **argv)
{
	static struct record_reader input;
	char *request, path[RECORD_MAX], name[512];

	(void)argv;
	if (argc != 1) {
		fputs("usage: xattr < REQUESTS\n", stderr);
		return EXIT_USAGE;
	}
	while ((request = read_record(&input)) != NULL) {
		int is_set = strncmp(request, "set ", 4) == 0, result = -EINVAL;

		if (strncmp(request, "get ", 4) == 0) {
			if (get(request + 4) != 0)
				return 1;
			continue;
		}
		if (!is_set && strncmp(request, "remove ", 7) != 0)
			return EXIT_USAGE;
		snprintf(path, sizeof path, "%s", request + (is_set ? 4 : 7));
		request = read_record(&input);
		if (request == NULL)
			return EXIT_USAGE;
		if (snprintf(name, sizeof name, "%s", request) < (int)sizeof name && is_ours(name))
			result = 0;
		if (is_set) {
			ssize_t length;

			request = read_record(&input);
			if (request == NULL)
				return EXIT_USAGE;
			length = from_hex(request);
			if (length < 0)
				result = -EINVAL;
			if (result == 0 && lsetxattr(path, name, request, (size_t)length, 0) != 0)
				result = -errno;
		} else if (result == 0 && lremovexattr(path, name) != 0) {
			result = -errno;
		}
		if (answer_number(result) != 0)
			return 1;
	}
	return 0;
}
