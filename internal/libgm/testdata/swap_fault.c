/* A job that goes on whatever call of the driver fails (GM_FAKE_FAIL): what was copied out comes back, and what could not be stays where
 * it is. It prints how many calls failed. */
#include "swap.h"

#define LIVE 8
#define SIZE 70000

static int failed;

/* tries makes a call again for as long as it fails, which it must not do forever. */
#define TRIES(call)                                \
	for (int tried = 0; (call) != 0; tried++) { \
		CHECK(tried < 3);                  \
		failed++;                          \
	}

int main(void)
{
	struct { void *p; unsigned word; int64_t ticket; } live[LIVE] = {{0}};
	start(0);
	CUstream s = stream();
	for (int i = 0; i < LIVE; i++)
		live[i].p = device_memory(SIZE);
	TRIES(gm_swap_open(0, 4 * MIB, 1));
	for (unsigned i = 0; i < 60; i++) {
		unsigned n = i * 5 % LIVE;
		if (live[n].ticket > 0) {
			TRIES(gm_swap_in(0, live[n].ticket, live[n].p, s));
			TRIES(gm_swap_ready(0, live[n].ticket, s));
			OK(gm_swap_drop(0, live[n].ticket));
		}
		OK(cuCtxSynchronize());
		CHECK(!live[n].word || holds(live[n].p, live[n].word, SIZE));
		live[n].word = i + 1;
		fill(live[n].p, live[n].word, SIZE, s);
		live[n].ticket = gm_swap_out(0, live[n].p, SIZE, s);
		if (!live[n].ticket) {
			failed++;
			continue;
		}
		TRIES(gm_swap_left(0, live[n].ticket, s));
		fill(live[n].p, 0, SIZE, s);
		failed += gm_swap_copied(0, live[n].ticket) < 0;
	}
	struct gm_swap_stats stats = swap_stats(0);
	CHECK(stats.host_bytes <= LIVE * SIZE && stats.host_bytes % SIZE == 0);
	gm_swap_close(0);
	OK(cuCtxSynchronize());
	printf("%d\n", failed);
	return 0;
}
