#define _GNU_SOURCE
#include "records.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int has_record(const struct record_reader *r)
{
	return memchr(r->bytes + r->start, '\0', r->end - r->start) != NULL;
}

int fill_records(struct record_reader *r)
{
	ssize_t n;

	if (r->start > 0) {
		memmove(r->bytes, r->bytes + r->start, r->end - r->start);
		r->end -= r->start;
		r->start = 0;
	}
	if (r->end == sizeof r->bytes)
		return -1;
	do
		n = read(r->fd, r->bytes + r->end, sizeof r->bytes - r->end);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		r->end += (size_t)n;
	return n > 0 ? 1 : (int)n;
}

char *read_record(struct record_reader *r)
{
	char *record;

	while (!has_record(r))
		if (fill_records(r) <= 0)
			return NULL;
	record = r->bytes + r->start;
	r->start += strlen(record) + 1;
	return record;
}

int write_all(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}
