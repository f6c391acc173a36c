/* Forks while other threads swap: the children can do nothing, and do not hang; the parent goes on. */
#include "swap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool stop;

static void *busy(void *unused)
{
	(void)unused;
	start(0);
	CUstream s = stream();
	void *p = device_memory(100000);
	for (unsigned i = 1; !stop; i++) {
		fill(p, i, 100000, s);
		int64_t ticket = gm_swap_out(0, p, 100000, s);
		CHECK(ticket > 0);
		OK(gm_swap_left(0, ticket, s));
		fill(p, 0, 100000, s);
		OK(gm_swap_in(0, ticket, p, s));
		OK(gm_swap_ready(0, ticket, s));
		OK(gm_swap_drop(0, ticket));
		OK(cuStreamSynchronize(s));
		CHECK(holds(p, i, 100000));
	}
	return NULL;
}

static void in_child(void *p, int64_t ticket)
{
	struct gm_swap_stats s;
	alarm(20);
	CHECK(gm_swap_out(0, p, 1000, NULL) == 0 && says("forked"));
	CHECK(gm_swap_open(0, MIB, 0) == -1 && gm_swap_left(0, ticket, NULL) == -1 && gm_swap_in(0, ticket, p, NULL) == -1);
	CHECK(gm_swap_expect(0, 1) == -1 && gm_swap_ready(0, ticket, NULL) == -1 && gm_swap_drop(0, ticket) == -1 && gm_swap_copied(0, ticket) == -1);
	CHECK(gm_swap_get_stats(0, &s) == -1);
	gm_swap_close(0);
}

int main(void)
{
	pthread_t threads[2];
	start(0);
	OK(gm_swap_open(0, 2 * MIB, 0));
	void *p = device_memory(1000);
	fill(p, 9, 1000, NULL);
	int64_t ticket = gm_swap_out(0, p, 1000, NULL);
	CHECK(ticket > 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, busy, NULL);
	for (int i = 0; i < 30; i++) {
		pid_t child = fork();
		if (!child) {
			in_child(p, ticket);
			if (i % 2)
				_exit(0);
			exit(0); /* destructors run */
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	OK(gm_swap_in(0, ticket, p, NULL));
	OK(gm_swap_ready(0, ticket, NULL));
	OK(cuCtxSynchronize());
	CHECK(holds(p, 9, 1000));
	gm_swap_close(0);
	return 0;
}
