/* Records that end with a NUL byte, on stdin and stdout: names of files may hold any other byte. */
#ifndef AENV_RECORDS_H
#define AENV_RECORDS_H

#include <stddef.h>

/* Room for a path (PATH_MAX) and a word or two before it. */
#define RECORD_MAX 8192

struct record_reader {
	int fd;
	size_t start, end;
	char bytes[2 * RECORD_MAX];
};

/* The next record, valid until the next call. NULL at the end of the input, or when a record is too long. */
char *read_record(struct record_reader *r);

/* Whether a whole record waits in memory, so that read_record does not block. */
int has_record(const struct record_reader *r);

/* Reads once. 0 at the end of the input, else 1; -1 on an error. */
int fill_records(struct record_reader *r);

/* Writes all bytes; -1 when nobody reads any more. */
int write_all(int fd, const char *bytes, size_t size);

#endif
