/* The long life of PID 1: envd runs, whatever ends is reaped, and a request to end is obeyed. */
#define _GNU_SOURCE
#include "native.h"
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ARGS 63
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 5000
/* envd that ran this long is not one that fails at start */
#define STABLE_MS 10000
#define STOP_WAIT_MS 2000

static char argv_text[8192];
static char *envd_argv[MAX_ARGS + 1];

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void read_argv(void)
{
	char *state = NULL, *line;
	int n = 0, fd = open(ENVD_ARGV, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, argv_text, sizeof argv_text - 1);

	if (size <= 0 || size == (ssize_t)sizeof argv_text - 1)
		die("cannot read %s", ENVD_ARGV);
	close(fd);
	for (line = strtok_r(argv_text, "\n", &state); line != NULL; line = strtok_r(NULL, "\n", &state)) {
		if (n == MAX_ARGS)
			die("too many lines in %s", ENVD_ARGV);
		envd_argv[n++] = line;
	}
	if (n == 0)
		die("no program in %s", ENVD_ARGV);
}

/*
 * The error pipe closes itself when the program is executed; otherwise it brings the reason. At boot that is the end;
 * later, when a guest may just have run out of memory, it is tried again.
 */
static pid_t start_envd(const sigset_t *unblocked, bool at_boot)
{
	/* TZ: or else the runtime reads /etc/localtime, where a stranger's root may have a pipe that blocks forever */
	static char *const environment[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "TZ=UTC", NULL
	};
	int error = 0, report[2];
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) != 0)
		die("no pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		if (null >= 0)
			dup2(null, STDIN_FILENO);
		if (null > STDERR_FILENO)
			close(null);
		write_text(ENVD_CGROUP "/cgroup.procs", "0");
		write_text("/proc/self/oom_score_adj", "-1000");
		setsid();
		sigprocmask(SIG_SETMASK, unblocked, NULL);
		execve(envd_argv[0], envd_argv, environment);
		error = errno;
		_exit(write(report[1], &error, sizeof error) == (ssize_t)sizeof error ? 127 : 126);
	}
	close(report[1]);
	if (pid > 0 && read(report[0], &error, sizeof error) == (ssize_t)sizeof error && at_boot)
		die("cannot execute %s: %s", envd_argv[0], strerror(error));
	close(report[0]);
	return pid;
}

static _Noreturn void shut_down(const sigset_t *signals)
{
	const struct timespec pause = { .tv_sec = 0, .tv_nsec = 20000000 };
	int64_t deadline = now_ms() + STOP_WAIT_MS;

	dprintf(STDERR_FILENO, "aenv-init: shutting down\n");
	kill(-1, SIGTERM);
	while (now_ms() < deadline && (waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD))
		sigtimedwait(signals, NULL, &pause);
	kill(-1, SIGKILL);
	sync();
	mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL);
	power_off();
}

_Noreturn void supervise(void)
{
	static const int stops[] = { SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGPWR };
	int64_t started, start_at = 0, backoff = BACKOFF_MIN_MS;
	sigset_t signals, before;
	pid_t envd = 0;

	read_argv();
	reboot(RB_DISABLE_CAD);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++)
		sigaddset(&signals, stops[i]);
	sigprocmask(SIG_BLOCK, &signals, &before);
	started = now_ms();
	dprintf(STDERR_FILENO, "aenv-init: starting envd %lld ms after the kernel\n", (long long)started);
	for (;;) {
		struct timespec wait = { .tv_sec = 3600 };
		int signal, status;
		pid_t pid;

		if (envd <= 0 && now_ms() >= start_at) {
			started = now_ms();
			envd = start_envd(&before, start_at == 0);
			if (envd < 0)
				start_at = now_ms() + backoff;
		}
		if (envd <= 0) {
			int64_t left = start_at - now_ms();

			wait.tv_sec = left > 0 ? left / 1000 : 0;
			wait.tv_nsec = left > 0 ? left % 1000 * 1000000 : 0;
		}
		signal = sigtimedwait(&signals, NULL, &wait);
		if (signal > 0 && signal != SIGCHLD)
			shut_down(&signals);
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (pid != envd)
				continue;
			envd = 0;
			backoff = now_ms() - started >= STABLE_MS ? BACKOFF_MIN_MS : backoff * 2;
			if (backoff > BACKOFF_MAX_MS)
				backoff = BACKOFF_MAX_MS;
			start_at = now_ms() + backoff;
			dprintf(STDERR_FILENO, "aenv-init: envd ended (%s %d), starting it again in %lld ms\n",
				WIFSIGNALED(status) ? "signal" : "exit code",
				WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), (long long)backoff);
		}
	}
}
