/* Calls that come at the end of the process, before and after that of the driver, with copies under way. */
#include "swap.h"

#include <unistd.h>

static void *p;
static int64_t ticket;

static void late(void)
{
	gm_swap_in(0, ticket, p, NULL);
	gm_swap_ready(0, ticket, NULL);
	gm_swap_copied(0, ticket);
	int64_t other = gm_swap_out(0, p, 1000, NULL);
	gm_swap_left(0, other, NULL);
	gm_swap_drop(0, ticket);
}

__attribute__((destructor)) static void latest(void)
{
	late();
	gm_swap_close(0);
	CHECK(gm_swap_out(0, p, 1000, NULL) == 0);
}

int main(int argc, char **argv)
{
	(void)argv;
	start(0);
	p = device_memory(MIB);
	OK(gm_swap_open(0, 2 * MIB, 1));
	atexit(late);
	ticket = gm_swap_out(0, p, MIB, NULL);
	CHECK(ticket > 0);
	if (argc > 1)
		_exit(0);
	return 0;
}
