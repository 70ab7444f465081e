/*
 * The one native program of a guest: PID 1 and the few system calls that JavaScript has no way to make. Linked
 * statically against musl, so that it runs on any root file system. Each applet is one file with one entry point:
 * argv[0] is the applet's name, the result is the exit code.
 */
#ifndef AENV_NATIVE_H
#define AENV_NATIVE_H

int init_main(int argc, char **argv);
int clock_main(int argc, char **argv);
int restore_main(int argc, char **argv);
int sync_main(int argc, char **argv);
int spawn_main(int argc, char **argv);
int xattr_main(int argc, char **argv);
int watch_main(int argc, char **argv);
int mount_main(int argc, char **argv);

/* Exit code of every applet that was called in a wrong way. */
#define EXIT_USAGE 64

/* Cgroups of a guest: one for envd, which is favoured, and one for all that it starts. Nowhere else do they exist. */
#define ENVD_CGROUP "/sys/fs/cgroup/aenv.envd"
#define USER_CGROUP "/sys/fs/cgroup/aenv.user"

#endif
