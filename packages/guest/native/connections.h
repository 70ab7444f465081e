/* TCP connections of the guest, as the kernel lists them by sock_diag(7). */
#ifndef AENV_CONNECTIONS_H
#define AENV_CONNECTIONS_H

#include <linux/inet_diag.h>
#include <stddef.h>
#include <stdint.h>

struct nlmsghdr;

/* Returns an error number; any but 0 ends the listing. `size` is that of the socket with its attributes. */
typedef int connection_visitor(const struct inet_diag_msg *socket, size_t size, void *context);

/*
 * Calls `visit` with each connection of one family in which there is another end that matters. `attributes` are those that
 * each comes with, a bit for each INET_DIAG_* as `idiag_ext` has them. Returns an error number, 0 for none.
 */
int each_connection(uint8_t family, uint8_t attributes, connection_visitor *visit, void *context);

/* Opens what requests go by; a negative number with errno when it cannot. */
int open_diag(void);

int send_diag(int fd, uint16_t type, uint16_t flags, const struct inet_diag_req_v2 *request);

/* Whether it is the one that envd answers on to this port of the host. */
int is_envds(const struct inet_diag_msg *socket, unsigned host_port);

#endif
