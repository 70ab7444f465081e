/*
 * Breaks TCP connections by sock_diag(7): the programs at this end see an error at once, where they would wait for an
 * answer of somebody who has never heard of them. Needs a kernel with CONFIG_INET_DIAG_DESTROY and the module tcp_diag.
 */
#define _GNU_SOURCE
#include "restore.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* contracts/guest/link.ts */
#define ENVD_PORT 49983

/* All in which there is another end that matters. */
#define STATES (1 << TCP_ESTABLISHED | 1 << TCP_SYN_SENT | 1 << TCP_SYN_RECV | 1 << TCP_FIN_WAIT1 | 1 << TCP_FIN_WAIT2 | \
		1 << TCP_CLOSE_WAIT | 1 << TCP_LAST_ACK | 1 << TCP_CLOSING)

struct message {
	struct nlmsghdr header;
	struct inet_diag_req_v2 request;
};

static int send_request(int fd, uint16_t type, uint16_t flags, const struct inet_diag_req_v2 *request)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct message message = {
		.header = { .nlmsg_len = sizeof message, .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags },
		.request = *request,
	};

	return sendto(fd, &message, sizeof message, 0, (const struct sockaddr *)&kernel, sizeof kernel) < 0 ? errno : 0;
}

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
	return ntohs(socket->id.idiag_sport) != ENVD_PORT || ntohs(socket->id.idiag_dport) != keep;
}

static int destroy(int fd, const struct inet_diag_msg *socket)
{
	const struct inet_diag_req_v2 request = {
		.sdiag_family = socket->idiag_family, .sdiag_protocol = IPPROTO_TCP, .id = socket->id,
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	int error = send_request(fd, SOCK_DESTROY, NLM_F_ACK, &request);

	if (error != 0)
		return error;
	if (recv(fd, &answer, sizeof answer, 0) < (ssize_t)(sizeof answer.header + sizeof answer.error))
		return EPROTO;
	error = answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EPROTO;
	/* it has ended by itself */
	return error == ENOENT ? 0 : error;
}

static int disconnect_family(uint8_t family, unsigned keep)
{
	const struct inet_diag_req_v2 all = {
		.sdiag_family = family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = STATES,
	};
	static _Alignas(8) char bytes[32768];
	int list = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int orders = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int error = list < 0 || orders < 0 ? errno : send_request(list, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &all);

	for (int done = 0; error == 0 && !done;) {
		ssize_t size = recv(list, bytes, sizeof bytes, 0);
		int length = (int)size;

		if (size <= 0) {
			error = size < 0 ? errno : EPROTO;
			break;
		}
		for (struct nlmsghdr *next = (struct nlmsghdr *)bytes; error == 0 && NLMSG_OK(next, (unsigned)length);
		     next = NLMSG_NEXT(next, length)) {
			if (next->nlmsg_type == NLMSG_DONE)
				done = 1;
			else if (next->nlmsg_type == NLMSG_ERROR)
				error = -((struct nlmsgerr *)NLMSG_DATA(next))->error;
			else if (is_outside(NLMSG_DATA(next), keep))
				error = destroy(orders, NLMSG_DATA(next));
			if (done)
				break;
		}
	}
	if (list >= 0)
		close(list);
	if (orders >= 0)
		close(orders);
	return error;
}

int disconnect(unsigned keep)
{
	int error = disconnect_family(AF_INET, keep);

	return error != 0 ? error : disconnect_family(AF_INET6, keep);
}
