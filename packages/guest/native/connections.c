/* Needs a kernel with the module tcp_diag. */
#define _GNU_SOURCE
#include "connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* contracts/guest/link.ts */
#define ENVD_PORT 49983

#define STATES (1 << TCP_ESTABLISHED | 1 << TCP_SYN_SENT | 1 << TCP_SYN_RECV | 1 << TCP_FIN_WAIT1 | 1 << TCP_FIN_WAIT2 | \
		1 << TCP_CLOSE_WAIT | 1 << TCP_LAST_ACK | 1 << TCP_CLOSING)

struct message {
	struct nlmsghdr header;
	struct inet_diag_req_v2 request;
};

int open_diag(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

int send_diag(int fd, uint16_t type, uint16_t flags, const struct inet_diag_req_v2 *request)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct message message = {
		.header = { .nlmsg_len = sizeof message, .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags },
		.request = *request,
	};

	return sendto(fd, &message, sizeof message, 0, (const struct sockaddr *)&kernel, sizeof kernel) < 0 ? errno : 0;
}

int is_envds(const struct inet_diag_msg *socket, unsigned host_port)
{
	return ntohs(socket->id.idiag_sport) == ENVD_PORT && ntohs(socket->id.idiag_dport) == host_port;
}

int each_connection(uint8_t family, uint8_t attributes, connection_visitor *visit, void *context)
{
	const struct inet_diag_req_v2 all = {
		.sdiag_family = family, .sdiag_protocol = IPPROTO_TCP, .idiag_ext = attributes, .idiag_states = STATES,
	};
	static _Alignas(8) char bytes[32768];
	int list = open_diag();
	int error = list < 0 ? errno : send_diag(list, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &all);

	for (int done = 0; error == 0 && !done;) {
		ssize_t size = recv(list, bytes, sizeof bytes, 0);
		int length = (int)size;

		if (size <= 0) {
			error = size < 0 ? errno : EPROTO;
			break;
		}
		for (struct nlmsghdr *next = (struct nlmsghdr *)bytes; error == 0 && NLMSG_OK(next, (unsigned)length);
		     next = NLMSG_NEXT(next, length)) {
			if (next->nlmsg_type == NLMSG_DONE) {
				done = 1;
				break;
			}
			if (next->nlmsg_type == NLMSG_ERROR)
				error = -((struct nlmsgerr *)NLMSG_DATA(next))->error;
			else
				error = visit(NLMSG_DATA(next), NLMSG_PAYLOAD(next, 0), context);
		}
	}
	if (list >= 0)
		close(list);
	return error;
}
