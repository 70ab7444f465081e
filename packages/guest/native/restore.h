/* What the steps after a restore are made of. Each returns an error number, 0 for none. */
#ifndef AENV_RESTORE_H
#define AENV_RESTORE_H

#include <stdbool.h>

/*
 * Stops or lets go on all that does not belong to envd. ETIMEDOUT when a program is still on its way: it stops as soon as
 * the kernel has done what it was called for. ENOENT where there are no cgroups.
 */
int set_frozen(bool frozen);

/* Breaks TCP connections; `keep` is the far port of the one that envd answers on. */
int disconnect(unsigned keep);

#endif
