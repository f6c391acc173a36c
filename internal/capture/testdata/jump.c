/* A library whose time of day jumps by an hour, forward and back, every few calls. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *t)
{
	static int calls;
	long result = syscall(SYS_clock_gettime, clock, t);
	if (clock == CLOCK_REALTIME && ++calls > 5)
		t->tv_sec += calls / 20 % 2 ? 3600 : -3600;
	return (int)result;
}
