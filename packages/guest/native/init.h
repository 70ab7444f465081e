/* Parts of the init applet. Everything here runs as PID 1, before any code of the root file system does. */
#ifndef AENV_INIT_H
#define AENV_INIT_H

#include <netinet/in.h>
#include <stdbool.h>

/* Where things are: the same names as in contracts/guest/layout.ts. */
#define RUN_DIR "/run/aenv"
#define TOOLS_DIR RUN_DIR "/tools"
#define ENVD_ARGV TOOLS_DIR "/envd.argv"

/* What the kernel's command line says. */
struct boot_config {
	char root_label[17];
	unsigned char tools_uuid[16];
	char hostname[65];
	bool has_net;
	struct in_addr address, netmask, gateway;
	unsigned char gateway_mac[6];
};

struct drives {
	char root[64], tools[64];
};

/* Prints one line on the console and powers off. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void power_off(void);

/* Writes to an existing file (a sysctl, a cgroup's knob); false when it could not be written as a whole. */
bool write_text(const char *path, const char *text);

void read_config(struct boot_config *config);
void load_modules(const char *list);
void find_drives(const struct boot_config *config, struct drives *drives);
void set_up_network(const struct boot_config *config);
_Noreturn void supervise(void);

#endif
