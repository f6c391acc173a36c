/* What is logged goes to a pipe that is full, as a terminal that is stopped: nothing waits for it, but the end for a moment. */
#include "check.h"

#include <fcntl.h>
#include <unistd.h>

static void fill(int fd)
{
	OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	while (write(fd, "x", 1) == 1)
		;
	OK(fcntl(fd, F_SETFL, 0));
}

int main(void)
{
	int ends[2];
	OK(pipe(ends));
	fill(ends[1]);
	CHECK(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
	alarm(20);
	for (int i = 0; i < 2000; i++) {
		void *p = gm_try_malloc(1000, 0, NULL);
		if (!p)
			return 1;
		gm_free(p, 0, 0, NULL);
		gm_free(p, 0, 0, NULL); /* a line, unless there were too many */
	}
	return 0;
}
