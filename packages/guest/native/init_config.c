/* The kernel's command line: aenv.root=, aenv.tools=, aenv.net=, aenv.hostname= (see guest/kernel-args.ts). */
#define _GNU_SOURCE
#include "init.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool parse_uuid(const char *text, unsigned char uuid[16])
{
	for (int i = 0; i < 16; i++) {
		unsigned int byte;

		if (*text == '-')
			text++;
		if (strspn(text, "0123456789abcdefABCDEF") < 2 || sscanf(text, "%2x", &byte) != 1)
			return false;
		uuid[i] = (unsigned char)byte;
		text += 2;
	}
	return *text == '\0';
}

/* ADDRESS/PREFIX,GATEWAY,GATEWAY-MAC */
static bool parse_net(char *text, struct boot_config *config)
{
	char *slash = strchr(text, '/'), *rest, *mac;
	unsigned char *m = config->gateway_mac;
	long prefix;

	if (slash == NULL)
		return false;
	*slash = '\0';
	prefix = strtol(slash + 1, &rest, 10);
	if (prefix < 1 || prefix > 31 || *rest != ',' || (mac = strchr(rest + 1, ',')) == NULL)
		return false;
	*mac = '\0';
	config->netmask.s_addr = htonl(0xffffffffu << (32 - prefix));
	if (sscanf(mac + 1, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", m, m + 1, m + 2, m + 3, m + 4, m + 5) != 6)
		return false;
	config->has_net = true;
	return inet_pton(AF_INET, text, &config->address) == 1 && inet_pton(AF_INET, rest + 1, &config->gateway) == 1;
}

void read_config(struct boot_config *config)
{
	char line[4096], *word, *state = NULL;
	bool has_tools = false;
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);

	if (n < 0)
		die("cannot read the kernel command line");
	close(fd);
	line[n] = '\0';
	memset(config, 0, sizeof *config);
	for (word = strtok_r(line, " \n", &state); word != NULL; word = strtok_r(NULL, " \n", &state)) {
		if (strncmp(word, "aenv.root=LABEL=", 16) == 0)
			snprintf(config->root_label, sizeof config->root_label, "%s", word + 16);
		else if (strncmp(word, "aenv.tools=UUID=", 16) == 0)
			has_tools = parse_uuid(word + 16, config->tools_uuid);
		else if (strncmp(word, "aenv.hostname=", 14) == 0)
			snprintf(config->hostname, sizeof config->hostname, "%s", word + 14);
		else if (strncmp(word, "aenv.net=", 9) == 0 && !parse_net(word + 9, config))
			die("cannot understand aenv.net on the kernel command line");
	}
	if (config->root_label[0] == '\0' || !has_tools)
		die("the kernel command line names no root or no tools drive");
}
