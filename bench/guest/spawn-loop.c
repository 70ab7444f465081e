/*
 * spawn-loop COUNT FILE ARGS...   Runs a program over and over and prints for each time how many microseconds passed
 * until its first byte of output: the least that anything which starts processes in this guest can take.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[1]) : 0;

	for (int i = 0; i < count; i++) {
		int64_t begin = now_us();
		int out[2], status;
		char bytes[4096];
		pid_t pid;

		if (pipe(out) != 0 || (pid = fork()) < 0)
			return 1;
		if (pid == 0) {
			dup2(out[1], STDOUT_FILENO);
			close(out[0]);
			close(out[1]);
			execvp(argv[2], argv + 2);
			_exit(127);
		}
		close(out[1]);
		if (read(out[0], bytes, sizeof bytes) <= 0)
			return 1;
		printf("%lld\n", (long long)(now_us() - begin));
		while (read(out[0], bytes, sizeof bytes) > 0)
			;
		close(out[0]);
		waitpid(pid, &status, 0);
	}
	return 0;
}
