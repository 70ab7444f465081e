/*
 * spawn [--uid N] [--gid N] [--groups A,B] [--cwd DIR] [--stdin] [--pipes | --pty COLSxROWS] -- FILE ARGS...
 *
 * Runs a program as a user, in a session of its own, with the environment as it is (PATH is searched in that one). Fd 3
 * is a socket to the caller, who reads lines from it:
 *
 *   pipes IN OUT ERR    with --pipes: numbers of the far ends of stdin (-1 without --stdin), stdout and stderr in this
 *                       process. The caller opens them through /proc/PID/fd and answers "go\n". Real pipes that belong
 *                       to the user, because sockets (all that Node can make) cannot be opened as /dev/stdout.
 *   error STAGE ERRNO   it failed; nothing runs
 *   end of file         without --pty: FILE runs now, in this very process
 *   pid N               with --pty: FILE runs now as N; this process pumps between the terminal and fds 0 and 1
 *   exit N, signal N    with --pty: how it ended; everything that it wrote is on fd 1
 *
 * With --pty it reads lines "size COLS ROWS" from fd 3; end of file there hangs the terminal up.
 *
 * spawn --wait   stands ready: it reads all of this, and the environment, from fd 3 first (spawn-request.c). The caller has
 *                the costly half of a start, a copy of itself, behind it by then.
 */
#define _GNU_SOURCE
#include "native.h"
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_GROUPS 1024
#define CLOSE_ON_EXEC_RANGE (1u << 2)

extern char **environ;

static int parse_number(const char *text, unsigned long max, unsigned long *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	return errno != 0 || end == text || *end != '\0' || *text < '0' || *text > '9' || *out > max ? -1 : 0;
}

static int parse_groups(const char *text, struct program *p)
{
	static gid_t groups[MAX_GROUPS];
	char copy[12];
	unsigned long value;

	p->groups = groups;
	while (*text != '\0') {
		size_t length = strcspn(text, ",");

		if (length >= sizeof copy || p->group_count == MAX_GROUPS)
			return -1;
		memcpy(copy, text, length);
		copy[length] = '\0';
		if (parse_number(copy, 0xfffffffeul, &value) != 0)
			return -1;
		groups[p->group_count++] = (gid_t)value;
		text += length + (text[length] == ',');
	}
	return 0;
}

static int parse_size(const char *text, struct winsize *size)
{
	unsigned short cols, rows;
	char rest;

	if (sscanf(text, "%hux%hu%c", &cols, &rows, &rest) != 2)
		return -1;
	size->ws_col = cols;
	size->ws_row = rows;
	return 0;
}

static int parse_options(int argc, char **argv, struct program *p)
{
	unsigned long value;
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *name = argv[i];

		if (strcmp(name, "--stdin") == 0) {
			p->with_stdin = 1;
			continue;
		}
		if (strcmp(name, "--pipes") == 0) {
			p->with_pipes = 1;
			continue;
		}
		if (++i >= argc)
			return -1;
		if (strcmp(name, "--uid") == 0 && parse_number(argv[i], 0xfffffffeul, &value) == 0) {
			p->uid = (uid_t)value;
			p->with_ids = 1;
		} else if (strcmp(name, "--gid") == 0 && parse_number(argv[i], 0xfffffffeul, &value) == 0) {
			p->gid = (gid_t)value;
			p->with_ids = 1;
		} else if (strcmp(name, "--groups") == 0 && parse_groups(argv[i], p) == 0) {
			p->with_ids = 1;
		} else if (strcmp(name, "--cwd") == 0) {
			p->cwd = argv[i];
		} else if (strcmp(name, "--pty") == 0 && parse_size(argv[i], &p->size) == 0) {
			p->with_pty = 1;
		} else {
			return -1;
		}
	}
	if (i + 1 >= argc || (p->with_pty && p->with_pipes))
		return -1;
	p->argv = argv + i + 1;
	return 0;
}

/* The first of several faults is the one that counts: whoever reads the line stops reading. */
void report_error(int fd, const char *stage, int error)
{
	dprintf(fd, "error %s %d\n", stage, error);
}

/* A process that the daemon starts must not have its protection from the out-of-memory killer. */
static void reset_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "0\n", 2) != 2)
		errno = 0;
	close(fd);
}

/* The C library keeps a few real-time signals to itself and refuses to change them; the kernel does not. */
static void reset_signals(void)
{
	static const unsigned long by_default[8];
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		syscall(SYS_rt_sigaction, number, by_default, NULL, NSIG / 8);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Takes on the user's identity and folder. Returns the stage that failed with errno set, or NULL. */
const char *become_user(const struct program *p)
{
	reset_oom_score();
	if (p->with_ids) {
		if (setgroups(p->group_count, p->groups) != 0)
			return "groups";
		if (setresgid(p->gid, p->gid, p->gid) != 0)
			return "gid";
		if (setresuid(p->uid, p->uid, p->uid) != 0)
			return "uid";
	}
	umask(022);
	if (p->cwd != NULL && chdir(p->cwd) != 0)
		return "chdir";
	return NULL;
}

/* execvpe(3) without its fallback to a shell: a file that is no program is an error. Returns only with errno set. */
void exec_program(char **argv)
{
	const char *file = argv[0], *path = getenv("PATH");
	char candidate[4096];
	int denied = 0;

	reset_signals();
	if (strchr(file, '/') != NULL || *file == '\0') {
		execve(file, argv, environ);
		return;
	}
	if (path == NULL)
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	for (const char *next = path; next != NULL; path = next + 1) {
		int length;

		next = strchr(path, ':');
		length = next == NULL ? (int)strlen(path) : (int)(next - path);
		/* an empty element is the current folder */
		if (snprintf(candidate, sizeof candidate, "%.*s/%s", length == 0 ? 1 : length, length == 0 ? "." : path,
			     file) >= (int)sizeof candidate)
			continue;
		execve(candidate, argv, environ);
		if (errno == EACCES)
			denied = 1;
		else if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG && errno != ELOOP)
			return;
		if (next == NULL)
			break;
	}
	errno = denied ? EACCES : ENOENT;
}

/* Makes the pipes, lets the caller open their far ends and puts the near ones on 0, 1 and 2. */
static const char *make_pipes(const struct program *p)
{
	int in[2] = { -1, -1 }, out[2], err[2];
	char answer[8];
	size_t have = 0;

	if ((p->with_stdin && pipe2(in, O_CLOEXEC) != 0) || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
		return "pipe";
	dprintf(CONTROL_FD, "pipes %d %d %d\n", in[1], out[0], err[0]);
	while (have == 0 || answer[have - 1] != '\n') {
		ssize_t n = read(CONTROL_FD, answer + have, sizeof answer - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1);
		have += (size_t)n;
		if (have == sizeof answer)
			break;
	}
	if ((p->with_stdin && dup2(in[0], 0) < 0) || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
		return "pipe";
	return NULL;
}

/* What becomes a program of the user leaves envd's cgroup. Without cgroups, and on the host, there is no such file. */
static void join_user_cgroup(void)
{
	int fd = open(USER_CGROUP "/cgroup.procs", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* where it fails, the program runs with envd's share, and its own output stays clean */
	(void)!write(fd, "0", 1);
	close(fd);
}

int spawn_main(int argc, char **argv)
{
	struct program program = { 0 };
	const char *stage;

	if (argc == 2 && strcmp(argv[1], "--wait") == 0) {
		static struct request request;
		int error = read_request(&request);

		if (error < 0)
			return 0;
		if (error != 0) {
			report_error(CONTROL_FD, error == E2BIG ? "exec" : "request", error);
			return 127;
		}
		argc = request.argc;
		argv = request.argv;
		environ = request.environment;
	}
	/* Not while it waits: it would have to be stopped and let go on around each capture. */
	join_user_cgroup();
	if (parse_options(argc, argv, &program) != 0) {
		fputs("usage: spawn [--uid N] [--gid N] [--groups A,B] [--cwd DIR] [--stdin] [--pipes | --pty CxR] -- FILE "
		      "ARGS...\n"
		      "       spawn --wait\n",
		      stderr);
		return EXIT_USAGE;
	}
	fcntl(CONTROL_FD, F_SETFD, FD_CLOEXEC);
	syscall(SYS_close_range, CONTROL_FD + 1, ~0u, CLOSE_ON_EXEC_RANGE);
	setsid();
	if (program.with_pty)
		return pump_terminal(&program);
	stage = become_user(&program);
	if (stage == NULL && program.with_pipes)
		stage = make_pipes(&program);
	if (stage == NULL) {
		exec_program(program.argv);
		stage = "exec";
	}
	report_error(CONTROL_FD, stage, errno);
	return 127;
}
