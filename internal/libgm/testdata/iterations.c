/* Iterates like a training loop of fixed shapes: forward through layers, back again, with what is in a block checked before it is freed.
 * usage: iterations N [say|try]: so many, and whether gm is told where they begin; with try it may plan none */
#include <time.h>

#include "check.h"

#define LAYERS 24
#define KEPT 3

static const size_t sizes[KEPT] = {5 * MIB + 512, 12 * MIB, 700000};

struct block {
	void *p;
	size_t size;
};

static unsigned word;

static struct block make(size_t size)
{
	struct block b = {gm_try_malloc(size, 0, NULL), size};
	CHECK(b.p);
	OK(cuMemsetD32Async(at(b.p), word, 1, NULL));
	OK(cuMemsetD32Async(at(b.p) + size / 4 * 4 - 4, word++, 1, NULL));
	return b;
}

static void drop(struct block *b)
{
	unsigned first, last;
	OK(cuMemcpyDtoH_v2(&first, at(b->p), 4));
	OK(cuMemcpyDtoH_v2(&last, at(b->p) + b->size / 4 * 4 - 4, 4));
	CHECK(first == last);
	gm_free(b->p, (ssize_t)b->size, 0, NULL);
	*b = (struct block){0};
}

static void iterate(void)
{
	struct block kept[LAYERS][KEPT];
	for (int layer = 0; layer < LAYERS; layer++) {
		struct block scratch = make((layer % 3 + 20) * MIB);
		for (int i = 0; i < KEPT; i++)
			kept[layer][i] = make(sizes[i]);
		drop(&scratch);
	}
	for (int layer = LAYERS - 1; layer >= 0; layer--)
		for (int i = 0; i < KEPT; i++) {
			struct block gradient = make(2 * sizes[i]);
			drop(&kept[layer][i]);
			drop(&gradient);
		}
}

int main(int argc, char **argv)
{
	int states[GM_FOLLOWED + 1] = {0};
	CHECK(argc == 2 || argc == 3);
	start(0);
	struct block parameters[10];
	for (int i = 0; i < 10; i++)
		parameters[i] = make((i + 3) * MIB);
	for (int i = atoi(argv[1]); i > 0; i--) {
		if (argc == 3) {
			int state = gm_iteration(0, 1);
			CHECK(state >= GM_RECORDED || (state == -1 && strcmp(argv[2], "try") == 0));
			if (state >= 0)
				states[state]++;
		}
		iterate();
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* in which a plan is made */
	}
	for (int i = 0; i < 10; i++)
		drop(&parameters[i]);
	if (argc == 3) {
		struct gm_stats stats;
		CHECK(gm_iteration(0, 0) == GM_UNPLANNED && gm_get_stats(0, &stats) == 0);
		printf("%d %d %d %lld\n", states[GM_RECORDED], states[GM_PLANNING], states[GM_FOLLOWED], (long long)stats.driver_calls);
	}
	gm_reset();
	return 0;
}
