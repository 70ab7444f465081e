#define _GNU_SOURCE
#include "native.h"

int init_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 1;
}
