/*
 * xattr   Serves attributes of files until stdin ends. Records end with a NUL byte. Links are not followed. Requests ("|"
 * stands between records):
 *
 *   get PATH                   answers NAME | VALUE for each attribute (xattr(7)) below "user.e2b." without a NUL in it
 *   set PATH | NAME | VALUE
 *   copy FROM | TO             gives TO the owner, the attributes, the mode and the times of FROM
 *
 * The last record of each answer is an error number, 0 for none.
 */
#define _GNU_SOURCE
#include "native.h"
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PREFIX "user.e2b."

/* XATTR_LIST_MAX and XATTR_SIZE_MAX of linux/limits.h */
static char names[65536], value[65536 + 1];

static void answer(const char *text)
{
	fwrite(text, 1, strlen(text) + 1, stdout);
}

static int get(const char *path)
{
	ssize_t size = llistxattr(path, names, sizeof names);

	for (char *name = names; name < names + size; name += strlen(name) + 1) {
		ssize_t length = strncmp(name, PREFIX, strlen(PREFIX)) != 0 ? -1 :
				 lgetxattr(path, name, value, sizeof value - 1);

		if (length < 0 || memchr(value, '\0', (size_t)length) != NULL)
			continue;
		value[length] = '\0';
		answer(name);
		answer(value);
	}
	return size < 0 ? errno : 0;
}

static int copy(const char *from, const char *to)
{
	struct stat like;
	ssize_t size;

	/* a change of the owner takes capabilities and the bits of the mode for users away, so it comes first */
	if (lstat(from, &like) != 0 || lchown(to, like.st_uid, like.st_gid) != 0)
		return errno;
	size = llistxattr(from, names, sizeof names);
	for (char *name = names; name < names + size; name += strlen(name) + 1) {
		ssize_t length = lgetxattr(from, name, value, sizeof value - 1);

		/* where the other file system has no such attributes, there are none */
		if (length >= 0 && lsetxattr(to, name, value, (size_t)length, 0) != 0 && errno != ENOTSUP)
			return errno;
	}
	if (!S_ISLNK(like.st_mode) && fchmodat(AT_FDCWD, to, like.st_mode & 07777, AT_SYMLINK_NOFOLLOW) != 0)
		return errno;
	return utimensat(AT_FDCWD, to, (struct timespec[]){ like.st_atim, like.st_mtim }, AT_SYMLINK_NOFOLLOW) == 0 ?
	       0 : errno;
}

int xattr_main(int argc, char **argv)
{
	static struct record_reader input;
	static char output[65536];
	char *record, path[RECORD_MAX], name[RECORD_MAX], number[16];

	(void)argv;
	if (argc != 1) {
		fputs("usage: xattr < REQUESTS\n", stderr);
		return EXIT_USAGE;
	}
	setvbuf(stdout, output, _IOFBF, sizeof output);
	while ((record = read_record(&input)) != NULL) {
		int is_set = strncmp(record, "set ", 4) == 0, result;

		if (strncmp(record, "get ", 4) == 0) {
			result = get(record + 4);
		} else {
			if (!is_set && strncmp(record, "copy ", 5) != 0)
				return EXIT_USAGE;
			snprintf(path, sizeof path, "%s", record + (is_set ? 4 : 5));
			record = read_record(&input);
			if (record == NULL)
				return EXIT_USAGE;
			snprintf(name, sizeof name, "%s", record);
			if (is_set && (record = read_record(&input)) == NULL)
				return EXIT_USAGE;
			result = !is_set ? copy(path, name) :
				 lsetxattr(path, name, record, strlen(record), 0) == 0 ? 0 : errno;
		}
		snprintf(number, sizeof number, "%d", result);
		answer(number);
		/* the answers to requests that came together go together */
		if (!has_record(&input) && fflush(stdout) != 0)
			return 1;
	}
	return 0;
}
