/*
 * Breaks TCP connections: the programs at this end see an error at once, where they would wait for an answer of somebody
 * who has never heard of them. Needs a kernel with CONFIG_INET_DIAG_DESTROY.
 */
#define _GNU_SOURCE
#include "connections.h"
#include "restore.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

struct order {
	int fd;
	unsigned keep;
};

/* An IPv4 address in the form of its family; 0 for one of IPv6, which leads nowhere but to the guest itself. */
static uint32_t ipv4_of(uint8_t family, const uint32_t *address)
{
	if (family == AF_INET)
		return ntohl(address[0]);
	return address[0] == 0 && address[1] == 0 && address[2] == htonl(0xffff) ? ntohl(address[3]) : 0;
}

static int is_outside(const struct inet_diag_msg *socket, unsigned keep)
{
	uint32_t here = ipv4_of(socket->idiag_family, socket->id.idiag_src);
	uint32_t there = ipv4_of(socket->idiag_family, socket->id.idiag_dst);

	/* with itself by its outer address is within the guest, too */
	if (there == 0 || there >> 24 == 127 || here == there)
		return 0;
	return !is_envds(socket, keep);
}

static int destroy_outside(const struct inet_diag_msg *socket, size_t size, void *context)
{
	const struct order *order = context;
	const struct inet_diag_req_v2 request = {
		.sdiag_family = socket->idiag_family, .sdiag_protocol = IPPROTO_TCP, .id = socket->id,
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	int error;

	(void)size;
	if (!is_outside(socket, order->keep))
		return 0;
	error = send_diag(order->fd, SOCK_DESTROY, NLM_F_ACK, &request);
	if (error != 0)
		return error;
	if (recv(order->fd, &answer, sizeof answer, 0) < (ssize_t)(sizeof answer.header + sizeof answer.error))
		return EPROTO;
	error = answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EPROTO;
	/* it has ended by itself */
	return error == ENOENT ? 0 : error;
}

int disconnect(unsigned keep)
{
	struct order order = { .fd = open_diag(), .keep = keep };
	int error = order.fd < 0 ? errno : each_connection(AF_INET, 0, destroy_outside, &order);

	if (error == 0)
		error = each_connection(AF_INET6, 0, destroy_outside, &order);
	if (order.fd >= 0)
		close(order.fd);
	return error;
}
