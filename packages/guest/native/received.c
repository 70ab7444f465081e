/* When the kernel received a call to envd: under emulation, long before a program that has just been continued reads it. */
#define _GNU_SOURCE
#include "connections.h"
#include "restore.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

struct search {
	unsigned port;
	int64_t ms;
};

static int find_received(const struct inet_diag_msg *socket, size_t size, void *context)
{
	struct search *search = context;
	int left = (int)(size - NLMSG_ALIGN(sizeof *socket));

	if (!is_envds(socket, search->port))
		return 0;
	for (const struct rtattr *next = (const struct rtattr *)((const char *)socket + NLMSG_ALIGN(sizeof *socket));
	     RTA_OK(next, left); next = RTA_NEXT(next, left)) {
		uint32_t ms;

		if (next->rta_type != INET_DIAG_INFO ||
		    RTA_PAYLOAD(next) < offsetof(struct tcp_info, tcpi_last_data_recv) + sizeof ms)
			continue;
		memcpy(&ms, (const char *)RTA_DATA(next) + offsetof(struct tcp_info, tcpi_last_data_recv), sizeof ms);
		search->ms = ms;
		break;
	}
	/* no other one is it */
	return ECANCELED;
}

int64_t ms_since_received(unsigned port)
{
	const uint8_t info = 1 << (INET_DIAG_INFO - 1);
	struct search search = { .port = port, .ms = -1 };

	if (each_connection(AF_INET, info, find_received, &search) == 0)
		each_connection(AF_INET6, info, find_received, &search);
	return search.ms;
}
