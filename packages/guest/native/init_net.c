/* The one link of a guest. Address, gateway and the gateway's MAC are the same in every sandbox. */
#define _GNU_SOURCE
#include "init.h"

#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEVICE "eth0"

static void set_address(int fd, unsigned long request, struct in_addr address, const char *what)
{
	struct ifreq ifr = { .ifr_name = DEVICE };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = address };

	memcpy(&ifr.ifr_addr, &in, sizeof in);
	if (ioctl(fd, request, &ifr) != 0)
		die("cannot set the %s of %s: %s", what, DEVICE, strerror(errno));
}

static void bring_up(int fd, const char *device)
{
	struct ifreq ifr = { .ifr_flags = IFF_UP | IFF_RUNNING };

	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", device);
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) != 0)
		die("cannot bring up %s: %s", device, strerror(errno));
}

static void add_default_route(int fd, struct in_addr gateway)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = gateway };
	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };

	memcpy(&route.rt_dst, &any, sizeof any);
	memcpy(&route.rt_genmask, &any, sizeof any);
	memcpy(&route.rt_gateway, &in, sizeof in);
	if (ioctl(fd, SIOCADDRT, &route) != 0)
		die("cannot set the default route: %s", strerror(errno));
}

/* A permanent entry: the first packet after a restore needs no answer from anyone. */
static void pin_gateway(int fd, const struct boot_config *config)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = config->gateway };
	struct arpreq arp = { .arp_flags = ATF_COM | ATF_PERM, .arp_dev = DEVICE };

	memcpy(&arp.arp_pa, &in, sizeof in);
	arp.arp_ha.sa_family = ARPHRD_ETHER;
	memcpy(arp.arp_ha.sa_data, config->gateway_mac, 6);
	if (ioctl(fd, SIOCSARP, &arp) != 0)
		die("cannot pin the address of the gateway: %s", strerror(errno));
}

void set_up_network(const struct boot_config *config)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("no IPv4: %s", strerror(errno));
	if (config->hostname[0] != '\0')
		sethostname(config->hostname, strlen(config->hostname));
	write_text("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	write_text("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	bring_up(fd, "lo");
	if (config->has_net) {
		set_address(fd, SIOCSIFADDR, config->address, "address");
		set_address(fd, SIOCSIFNETMASK, config->netmask, "netmask");
		bring_up(fd, DEVICE);
		add_default_route(fd, config->gateway);
		pin_gateway(fd, config);
	}
	close(fd);
}
