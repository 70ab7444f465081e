/*
 * The least that a guest can be: says that it runs, and then starts the runtime with a trivial server and asks it once.
 * What it says on the console is timed by the host:
 *
 *   init       the first thing it does
 *   start      right before the runtime is executed
 *   answered   the server has answered
 *
 * /argv holds the runtime's arguments, one a line. The server writes a byte to fd 3 when it listens on port 80 of the
 * loopback device, so that nothing of the one processor goes into asking too early.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LISTENS_FD 3
#define TOOLS "/tools"

static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(1);
}

/* Says what failed and waits: the host ends the machine. */
static _Noreturn void fail(const char *what)
{
	dprintf(STDOUT_FILENO, "failed: %s: %s\n", what, strerror(errno));
	for (;;)
		pause();
}

static void load_modules(void)
{
	FILE *list = fopen("/modules", "r");
	char path[256];

	if (list == NULL)
		fail("modules");
	while (fgets(path, sizeof path, list) != NULL) {
		int fd;

		path[strcspn(path, "\n")] = '\0';
		fd = open(path, O_RDONLY);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST))
			fail(path);
		close(fd);
	}
	fclose(list);
}

/* The drive is the only one, and may come up a moment after its driver. */
static void mount_tools(void)
{
	mkdir(TOOLS, 0755);
	for (int tries = 0; mount("/dev/vda", TOOLS, "erofs", MS_RDONLY, NULL) != 0; tries++) {
		if (tries == 1000)
			fail("tools drive");
		usleep(2000);
	}
}

static void bring_up_loopback(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) != 0)
		fail("loopback");
	close(fd);
}

static void start_runtime(int listens)
{
	static char text[4096], *argv[32];
	int n = 0, fd = open("/argv", O_RDONLY);
	char *environment[] = { "PATH=/", "HOME=/", NULL }, *state = NULL;

	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		fail("argv");
	close(fd);
	for (char *line = strtok_r(text, "\n", &state); line != NULL && n < 31; line = strtok_r(NULL, "\n", &state))
		argv[n++] = line;
	say("start\n");
	if (fork() == 0) {
		dup2(listens, LISTENS_FD);
		execve(argv[0], argv, environment);
		fail(argv[0]);
	}
}

static void ask_server(void)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: bare\r\n\r\n";
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(80) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char answer[256];

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof in) != 0)
		fail("connect");
	if (write(fd, request, sizeof request - 1) < 0 || read(fd, answer, sizeof answer) < 12)
		fail("answer");
	if (memcmp(answer, "HTTP/1.1 204", 12) != 0)
		fail("status");
}

int main(void)
{
	int listens[2];
	char byte;

	say("init\n");
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	load_modules();
	mount_tools();
	bring_up_loopback();
	if (pipe(listens) != 0)
		fail("pipe");
	start_runtime(listens[1]);
	close(listens[1]);
	if (read(listens[0], &byte, 1) != 1)
		fail("the server ended");
	ask_server();
	say("answered\n");
	for (;;)
		pause();
}
