/* What the two halves of the spawn applet share: starting the program, and pumping its terminal. */
#ifndef AENV_SPAWN_H
#define AENV_SPAWN_H

#include <sys/ioctl.h>
#include <sys/types.h>

/* socket to the caller */
#define CONTROL_FD 3

struct program {
	char **argv;
	const char *cwd;
	int with_ids;
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	size_t group_count;
	int with_stdin;
	int with_pipes;
	int with_pty;
	struct winsize size;
};

/* What a process that waits is told to be. */
struct request {
	int argc;
	char **argv;
	char **environment;
};

/* Waits for it. Returns 0, an error number, or -1 when the caller is gone. */
int read_request(struct request *request);
void report_error(int fd, const char *stage, int error);
const char *become_user(const struct program *p);
void exec_program(char **argv);
int pump_terminal(const struct program *p);

#endif
