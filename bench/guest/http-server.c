/*
 * http-server PORT   Answers every request with the same few bytes and keeps connections: next to nothing of a guest's
 * processor goes into it, so what is measured is the way to it. Runs in the background, and says so by ending.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_FDS 1024

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";

/* How many bytes of the empty line at the end of a request have been seen, by connection. */
static unsigned char seen[MAX_FDS];

static int ready(int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&in, sizeof in) != 0 || listen(fd, 256) != 0) {
		perror("http-server");
		exit(1);
	}
	return fd;
}

/* Requests have no bodies: each ends with an empty line. Returns -1 when the connection is over. */
static int serve(int fd)
{
	static const char end[] = "\r\n\r\n";
	char bytes[4096];
	ssize_t n = read(fd, bytes, sizeof bytes);

	if (n <= 0)
		return n < 0 && errno == EINTR ? 0 : -1;
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == end[seen[fd]])
			seen[fd]++;
		else
			seen[fd] = bytes[i] == '\r';
		if (seen[fd] < 4)
			continue;
		seen[fd] = 0;
		if (write(fd, answer, sizeof answer - 1) != sizeof answer - 1)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int listener = ready(argc > 1 ? atoi(argv[1]) : 8080), poll = epoll_create1(0), one = 1;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };

	if (daemon(0, 0) != 0)
		return 1;
	epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		struct epoll_event events[64];
		int n = epoll_wait(poll, events, 64, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd != listener) {
				if (serve(fd) != 0)
					close(fd);
				continue;
			}
			fd = accept(listener, NULL, NULL);
			if (fd < 0)
				continue;
			if (fd >= MAX_FDS) {
				close(fd);
				continue;
			}
			seen[fd] = 0;
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
			event.data.fd = fd;
			epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
		}
	}
}
