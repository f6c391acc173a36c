/* A request that finds no room has it made: blocks that are kept are freed, the oldest first. Sizes are small and large; threads ask at the same time. */
#include "check.h"

#include <pthread.h>

enum { KEPT = 64, THREADS = 4, ROUNDS = 200, LIMIT = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *kept[KEPT];
static size_t sizes[KEPT];
static int first, last, asked; /* of kept: a ring */
static _Thread_local int within;

static size_t make_room(int device, size_t size, void *stream)
{
	struct gm_stats stats;
	size_t freed = 0;
	(void)stream;
	CHECK(device == 0 && !gm_get_stats(0, &stats)); /* no lock is held */
	if (within)
		return 0;
	within = 1;
	CHECK(!gm_try_malloc((size_t)LIMIT * MIB, 0, NULL));
	within = 0;
	pthread_mutex_lock(&lock);
	asked++;
	for (; first < last && freed < size; first++) {
		gm_free(kept[first % KEPT], 0, 0, NULL);
		freed += sizes[first % KEPT];
	}
	pthread_mutex_unlock(&lock);
	return freed;
}

static void keep(void *p, size_t size)
{
	pthread_mutex_lock(&lock);
	if (last - first == KEPT) {
		gm_free(kept[first % KEPT], 0, 0, NULL);
		first++;
	}
	kept[last % KEPT] = p;
	sizes[last++ % KEPT] = size;
	pthread_mutex_unlock(&lock);
}

static void *ask(void *data)
{
	unsigned seed = (unsigned)(size_t)data;
	for (int i = 0; i < ROUNDS; i++) {
		size_t size = (seed = seed * 1664525 + 1013904223) >> 28 ? (seed >> 8) % (40 * MIB) + 1 : (seed >> 8) % MIB + 1;
		void *p = gm_try_malloc(size, 0, NULL);
		CHECK(p); /* four threads hold 40 MiB each at most, beside what is kept */
		keep(p, size);
	}
	return NULL;
}

/* broken has the driver fail: no room helps, and the text says what the driver says. */
static int broken(void)
{
	char text[4096];
	start(0);
	gm_on_full(make_room);
	CHECK(!gm_try_malloc(30 * MIB, 0, NULL) && !asked && !first);
	CHECK(gm_last_error(text, sizeof text) && strstr(text, "The driver says"));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "broken"))
		return broken();
	pthread_t threads[THREADS];
	char text[256];
	start(0);
	void *all = gm_try_malloc((size_t)LIMIT * MIB, 0, NULL);
	CHECK(all && !gm_try_malloc(2 * MIB, 0, NULL));
	gm_on_full(make_room);
	CHECK(!gm_try_malloc(2 * MIB, 0, NULL) && asked == 2); /* nothing is kept */
	CHECK(gm_last_error(text, sizeof text) && strstr(text, "CUDA out of memory"));
	gm_free(all, 0, 0, NULL);
	for (size_t i = 0; i < THREADS; i++)
		OK(pthread_create(&threads[i], NULL, ask, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
	CHECK(asked > THREADS * ROUNDS / 20);
	gm_on_full(NULL);
	for (; first < last; first++)
		gm_free(kept[first % KEPT], 0, 0, NULL);
	gm_reset();
	return 0;
}
