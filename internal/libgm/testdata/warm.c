/* Large blocks that are freed and requested again: served without a call of the driver, from the place that came first, and free memory
 * to whoever else asks for it. Argument "threads": many threads do so at once. */
#include "check.h"

#include <pthread.h>

enum { BLOCKS = 8, THREADS = 8, ROUNDS = 2000, SLOTS = 8 };
#define SIZE (12 * MIB)

static void *get(size_t size, CUstream stream)
{
	void *p = gm_try_malloc(size, 0, stream);
	CHECK(p);
	return p;
}

static int64_t allocated(void) { return stats_of(0).allocated_bytes[GM_ALL].current; }

/* The first request tells C that blocks may stay with it. */
static void begin(void)
{
	gm_free(get(3 * MIB, NULL), 0, 0, NULL);
	gm_free(get(3 * MIB, NULL), 0, 0, NULL);
}

static void order(void)
{
	void *p[BLOCKS];
	for (int i = 0; i < BLOCKS; i++)
		p[i] = get(SIZE, NULL);
	int64_t calls = stats_of(0).driver_calls, before = allocated();
	for (int round = 1; round < BLOCKS; round++) {
		for (int i = 0; i < BLOCKS; i++)
			gm_free(p[(i + round) * 5 % BLOCKS], 0, 0, NULL);
		CHECK(allocated() == before - BLOCKS * (int64_t)SIZE);
		for (int i = 0; i < BLOCKS; i++)
			CHECK(get(SIZE - (size_t)i, NULL) == p[i]); /* of the same size, rounded */
		CHECK(allocated() == before);
	}
	CHECK(stats_of(0).driver_calls == calls);
	for (int i = 0; i < BLOCKS; i++)
		gm_free(p[i], 0, 0, NULL);
}

/* What is warm is not live: it is known by no call, and a second free is refused. */
static void dead(void)
{
	struct gm_block block;
	size_t size;
	void *p = get(SIZE, NULL);
	gm_free(p, 0, 0, NULL);
	CHECK(gm_find(0, p, &block) == -1 && gm_device_of(p) == -1 && !gm_base_alloc(p, &size) && size == 0);
	int64_t before = allocated();
	gm_free(p, 0, 0, NULL);
	CHECK(allocated() == before && get(SIZE, NULL) == p);
	void *q = get(SIZE, NULL);
	CHECK(q != p);
	gm_free(p, 0, 0, NULL);
	gm_free(q, 0, 0, NULL);
}

/* A block that another stream uses is not handed out before that is done with it. */
static void lent(CUstream other)
{
	void *p = get(5 * MIB, NULL);
	gm_record_stream(p, other);
	gm_free(p, 0, 0, NULL);
	OK(cuStreamSynchronize(other));
	CHECK(get(5 * MIB, NULL) == p);
	gm_free(p, 0, 0, NULL);
}

/* Warm memory is free for other sizes, and goes back to the device. */
static void flushed(void)
{
	static struct gm_block blocks[1 << 10];
	size_t few = 20 * SIZE;
	void *p[20];
	gm_reset();
	gm_memory_fraction((double)few / (double)(141 * GIB), 0);
	begin();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 19; i++)
			p[i] = get(SIZE, NULL);
		for (int i = 0; i < 19; i++)
			gm_free(p[i], 0, 0, NULL);
		gm_free(get(18 * SIZE, NULL), 0, 0, NULL);
	}
	int64_t n = gm_blocks(0, blocks, 1 << 10);
	for (int64_t i = 0; i < n; i++)
		CHECK(blocks[i].state == GM_FREE);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current == 0 && stats_of(0).ooms == 0);
	CHECK(!gm_try_malloc(21 * SIZE, 0, NULL) && stats_of(0).ooms == 1);
	for (int i = 0; i < 19; i++)
		p[i] = get(SIZE, NULL);
	for (int i = 0; i < 19; i++)
		gm_free(p[i], 0, 0, NULL);
	void *small[256]; /* segments of 2 MiB, for which warm memory must go */
	for (int i = 0; i < 200; i++)
		small[i] = get(MIB, NULL);
	for (int i = 0; i < 200; i++)
		gm_free(small[i], 0, 0, NULL);
	gm_memory_fraction(1, 0);
}

/* With a second stream Go serves all large requests, and memory moves between the streams. */
static void two_streams(CUstream other)
{
	void *p = get(SIZE, NULL), *q = get(SIZE, other);
	for (int i = 0; i < 4; i++) {
		gm_free(p, 0, 0, NULL);
		gm_free(q, 0, 0, other);
		CHECK(get(SIZE, NULL) == p && get(SIZE, other) == q);
	}
	gm_free(p, 0, 0, NULL);
	gm_free(q, 0, 0, other);
}

static CUdeviceptr last_word(void *p, size_t size) { return at(p) + size - 4; }

static void mark(void *p, size_t size, unsigned value)
{
	OK(cuMemsetD32Async(at(p), value, 1, NULL));
	OK(cuMemsetD32Async(last_word(p, size), value, 1, NULL));
	OK(cuStreamSynchronize(NULL));
}

static void give(void *p, size_t size, unsigned value)
{
	unsigned first, last;
	OK(cuMemcpyDtoH_v2(&first, at(p), 4));
	OK(cuMemcpyDtoH_v2(&last, last_word(p, size), 4));
	CHECK(first == value && last == value);
	gm_free(p, 0, 0, NULL);
}

static void *work(void *argument)
{
	static const size_t sizes[] = {2 * MIB, 4 * MIB, 12 * MIB, 40 * MIB};
	struct { void *p; size_t size; unsigned value; } live[SLOTS] = {0}, *b;
	unsigned state = (unsigned)(size_t)argument;
	start(0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		state = state * 1664525 + 1013904223;
		b = &live[state >> 8 & (SLOTS - 1)];
		if (b->p)
			give(b->p, b->size, b->value);
		b->size = sizes[state >> 20 & 3];
		b->p = get(b->size, NULL);
		b->value = (unsigned)(size_t)argument << 24 | i;
		mark(b->p, b->size, b->value);
	}
	for (b = live; b < live + SLOTS; b++)
		if (b->p)
			give(b->p, b->size, b->value);
	return NULL;
}

static void many_threads(void)
{
	pthread_t threads[THREADS];
	for (size_t i = 0; i < THREADS; i++)
		OK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)));
	for (size_t i = 0; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
}

int main(int argc, char **argv)
{
	CUstream other;
	start(0);
	OK(cuStreamCreate(&other, 1));
	if (argc > 1 && strcmp(argv[1], "threads") == 0) {
		many_threads();
	} else {
		begin();
		order();
		dead();
		lent(other);
		flushed();
		two_streams(other);
	}
	gm_reset();
	CHECK(allocated() == 0 && stats_of(0).reserved_bytes[GM_ALL].current == 0);
	return 0;
}
