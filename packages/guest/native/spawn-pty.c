/*
 * The terminal half of spawn: makes a pseudo terminal (pty(7)), starts the program on it and carries bytes between its
 * master and fds 0 and 1 until the program has ended and all of its output is through.
 */
#define _GNU_SOURCE
#include "native.h"
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* How long output may pause after the end while others still hold the terminal, in ms. */
#define QUIET_MS 100

/* More than the kernel keeps of a terminal's output: what comes after this is not from the program that has ended. */
#define TERMINAL_MAX 262144

struct buffer {
	char bytes[65536];
	size_t start, end;
};

struct pump {
	int master;
	int child_events;
	pid_t child;
	int status;
	int ended;
	size_t after_end;
	int input_over;
	struct buffer in, out;
	char line[64];
	size_t line_length;
};

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Reads into an empty buffer. 1: bytes, 0: none now, -1: end or error. */
static int fill(int fd, struct buffer *b)
{
	ssize_t n = read(fd, b->bytes, sizeof b->bytes);

	if (n > 0) {
		b->start = 0;
		b->end = (size_t)n;
		return 1;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* Writes what it can. -1: the other side is gone. */
static int drain(int fd, struct buffer *b)
{
	ssize_t n = write(fd, b->bytes + b->start, b->end - b->start);

	if (n >= 0)
		b->start += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		return -1;
	return 0;
}

static int is_empty(const struct buffer *b)
{
	return b->start == b->end;
}

static void apply_size(int master, const char *line)
{
	struct winsize size = { 0 };
	char rest;

	if (sscanf(line, "size %hu %hu%c", &size.ws_col, &size.ws_row, &rest) == 2)
		ioctl(master, TIOCSWINSZ, &size);
}

/* Lines from the caller; -1 when it is gone. */
static int read_control(struct pump *p)
{
	char bytes[256];
	ssize_t n = read(CONTROL_FD, bytes, sizeof bytes);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		return -1;
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			p->line[p->line_length] = '\0';
			apply_size(p->master, p->line);
			p->line_length = 0;
		} else if (p->line_length < sizeof p->line - 1) {
			p->line[p->line_length++] = bytes[i];
		}
	}
	return 0;
}

/* Returns when the program has ended and its output is through, or when the caller is gone. */
static void run_pump(struct pump *p)
{
	int output_over = 0;

	for (;;) {
		struct pollfd fds[] = {
			{ .fd = !p->input_over && is_empty(&p->in) ? 0 : -1, .events = POLLIN },
			{ .fd = is_empty(&p->out) ? -1 : 1, .events = POLLOUT },
			{ .fd = p->master, .events = 0 },
			{ .fd = CONTROL_FD, .events = POLLIN },
			{ .fd = p->ended ? -1 : p->child_events, .events = POLLIN },
		};
		int quiet;

		if (is_empty(&p->out) && !output_over)
			fds[2].events |= POLLIN;
		if (!is_empty(&p->in) && !p->ended)
			fds[2].events |= POLLOUT;
		/* Without anything to wait for, a hang-up on the master would make poll return at once, over and over. */
		if (fds[2].events == 0)
			fds[2].fd = -1;
		if (p->ended && output_over && is_empty(&p->out))
			return;
		quiet = p->ended && is_empty(&p->out) ? QUIET_MS : -1;

		int ready = poll(fds, sizeof fds / sizeof fds[0], quiet);

		if (ready < 0 && errno != EINTR)
			return;
		if (ready == 0)
			return;
		if (ready < 0)
			continue;
		if (fds[3].revents != 0 && read_control(p) != 0)
			return;
		if (fds[1].revents != 0 && drain(1, &p->out) != 0)
			return;
		if (fds[2].revents & (POLLIN | POLLHUP | POLLERR) && is_empty(&p->out) && !output_over) {
			/* EIO: nobody has the terminal open any more. Before the end the program may open /dev/tty again. */
			if (fill(p->master, &p->out) < 0) {
				output_over = p->ended;
				if (!p->ended) {
					struct pollfd wait = { .fd = p->child_events, .events = POLLIN };

					poll(&wait, 1, QUIET_MS);
				}
			} else if (p->ended) {
				p->after_end += p->out.end - p->out.start;
				output_over = p->after_end > TERMINAL_MAX;
			}
		}
		if (fds[2].revents & POLLOUT && !is_empty(&p->in) && drain(p->master, &p->in) != 0)
			p->in.start = p->in.end;
		if (fds[0].revents != 0 && fill(0, &p->in) < 0)
			p->input_over = 1;
		if (!p->ended && waitpid(p->child, &p->status, WNOHANG) == p->child) {
			p->ended = 1;
			p->in.start = p->in.end;
			p->input_over = 1;
		}
	}
}

/* In the child: never returns. */
static void start_child(const struct program *p, int terminal, int errors)
{
	const char *stage = NULL;

	setsid();
	if (ioctl(terminal, TIOCSCTTY, 0) != 0 || dup2(terminal, 0) < 0 || dup2(terminal, 1) < 0 || dup2(terminal, 2) < 0)
		stage = "pty";
	if (stage == NULL)
		stage = become_user(p);
	if (stage == NULL) {
		exec_program(p->argv);
		stage = "exec";
	}
	report_error(errors, stage, errno);
	_exit(127);
}

/* Opens both sides. The slave belongs to the user, as a login does it. Returns 0 or -1 with errno. */
static int open_terminal(const struct program *p, int *master, int *terminal)
{
	int unlock = 0;

	*master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*master < 0)
		*master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*master < 0 || ioctl(*master, TIOCSPTLCK, &unlock) != 0)
		return -1;
	*terminal = ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*terminal < 0 || ioctl(*master, TIOCSWINSZ, &p->size) != 0)
		return -1;
	if (p->with_ids && (fchown(*terminal, p->uid, p->gid) != 0 || fchmod(*terminal, 0620) != 0))
		return -1;
	return 0;
}

int pump_terminal(const struct program *p)
{
	static struct pump pump;
	int terminal, errors[2];
	char message[64];
	ssize_t length;
	sigset_t mask;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	pump.child_events = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (pump.child_events < 0 || open_terminal(p, &pump.master, &terminal) != 0 || pipe2(errors, O_CLOEXEC) != 0) {
		report_error(CONTROL_FD, "pty", errno);
		return 127;
	}
	pump.child = fork();
	if (pump.child < 0) {
		report_error(CONTROL_FD, "fork", errno);
		return 127;
	}
	if (pump.child == 0)
		start_child(p, terminal, errors[1]);
	close(terminal);
	close(errors[1]);
	do
		length = read(errors[0], message, sizeof message);
	while (length < 0 && errno == EINTR);
	close(errors[0]);
	if (length > 0) {
		waitpid(pump.child, NULL, 0);
		return write(CONTROL_FD, message, (size_t)length) == length ? 127 : 1;
	}
	dprintf(CONTROL_FD, "pid %d\n", (int)pump.child);

	set_nonblocking(0);
	set_nonblocking(1);
	set_nonblocking(pump.master);
	set_nonblocking(CONTROL_FD);
	run_pump(&pump);
	if (pump.ended) {
		int signaled = WIFSIGNALED(pump.status);

		dprintf(CONTROL_FD, "%s %d\n", signaled ? "signal" : "exit",
			signaled ? WTERMSIG(pump.status) : WEXITSTATUS(pump.status));
	}
	return 0;
}
