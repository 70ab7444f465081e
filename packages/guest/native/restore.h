/* What the steps after a restore are made of. Each returns an error number, 0 for none. */
#ifndef AENV_RESTORE_H
#define AENV_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Stops or lets go on all that does not belong to envd. ETIMEDOUT when a program is still on its way: it stops as soon as
 * the kernel has done what it was called for. ENOENT where there are no cgroups.
 */
int set_frozen(bool frozen);

/* Breaks TCP connections; `keep` is the far port of the one that envd answers on. */
int disconnect(unsigned keep);

/*
 * `ms` since the kernel last received something by the connection that envd answers on to this port of the host; negative
 * when it does not tell. The kernel counts by its ticks (tcp_info.tcpi_last_data_recv, tcp(7)).
 */
int64_t ms_since_received(unsigned port);

#endif
