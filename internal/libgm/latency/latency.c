/* latency times the calls of libgm.so, on whatever driver it finds, and prints them in nanoseconds, the targets in the last columns:
 * no worse than PyTorch's own allocator, measured in the same way from C++.
 *
 * usage: latency [libgm.so] */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../gm.h"

#define ROUNDS 200000
#define THREADS 8
#define LIVE_MIN 50
#define LIVE_MAX 400

static __typeof__(gm_try_malloc) *alloc;
static __typeof__(gm_free) *give;
static atomic_int failures;

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

struct times {
	size_t n;
	int64_t clock; /* what reading the clock takes, already taken off */
	int64_t ns[ROUNDS];
};

static void *get(size_t size, void *stream)
{
	void *p = alloc(size, 0, stream);
	if (!p)
		failures++;
	return p;
}

static void add(struct times *t, int64_t begin, int64_t end)
{
	int64_t ns = end - begin - t->clock;
	t->ns[t->n++] = ns > 0 ? ns : 0;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* print ends with the targets of the median and of all but one call in a thousand, 0 if there is none. */
static void print(const char *what, struct times *t, int64_t p50, int64_t p999)
{
	qsort(t->ns, t->n, sizeof *t->ns, by_value);
	printf("%-32s %8lld %8lld %8lld %10lld %8lld %8lld\n", what, (long long)t->ns[t->n / 2], (long long)t->ns[t->n / 100 * 99],
	       (long long)t->ns[t->n / 1000 * 999], (long long)t->ns[t->n - 1], (long long)p50, (long long)p999);
	t->n = 0;
}

static struct times *make_times(void)
{
	struct times *t = calloc(1, sizeof *t);
	memset(t->ns, 1, sizeof t->ns);
	int64_t begin = now();
	for (int i = 0; i < 100000; i++)
		now();
	t->clock = (now() - begin) / 100000;
	return t;
}

/* A number that looks random, the same in each run. */
static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static size_t mixed_size(uint64_t *state)
{
	static const size_t bases[] = {512, 4096, 65536, 1 << 20, 3 << 20, 12 << 20, 40 << 20};
	return bases[draw(state) % 7] * (1 + draw(state) % 4);
}

static void exact_reuse(struct times *mallocs, struct times *frees, size_t size)
{
	give(get(size, NULL), (ssize_t)size, 0, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		int64_t begin = now();
		void *p = get(size, NULL);
		int64_t middle = now();
		give(p, (ssize_t)size, 0, NULL);
		int64_t end = now();
		add(mallocs, begin, middle);
		add(frees, middle, end);
	}
}

/* churn frees a block and allocates another in its place, in steps that ask for the same sizes in the same order, as a training loop
 * does, and keep 50 to 400 blocks live. The first steps are not timed. */
static void churn(struct times *pairs, uint64_t seed)
{
	enum { STEP = 5000, WARM = 10 };
	struct { void *p; size_t size; } live[LIVE_MAX] = {{0}};
	uint64_t state = seed;
	for (size_t i = 0; i < WARM * STEP + ROUNDS; i++) {
		if (i % STEP == 0)
			state = seed;
		size_t size = mixed_size(&state), slot = draw(&state) % (LIVE_MIN + i % STEP * (LIVE_MAX - LIVE_MIN) / STEP);
		int64_t begin = now();
		if (live[slot].p)
			give(live[slot].p, (ssize_t)live[slot].size, 0, NULL);
		live[slot].p = get(size, NULL);
		int64_t end = now();
		live[slot].size = size;
		if (i >= WARM * STEP)
			add(pairs, begin, end);
	}
	for (size_t i = 0; i < LIVE_MAX; i++)
		give(live[i].p, (ssize_t)live[i].size, 0, NULL);
}

struct job { struct times *times; uint64_t seed; };

static void *churn_small(void *argument)
{
	struct job *job = argument;
	void *live[64] = {0};
	uint64_t state = job->seed;
	for (int i = 0; i < ROUNDS / THREADS; i++) {
		size_t slot = draw(&state) % 64, size = 512 << draw(&state) % 12;
		int64_t begin = now();
		give(live[slot], 0, 0, NULL);
		live[slot] = get(size, NULL);
		add(job->times, begin, now());
	}
	for (int i = 0; i < 64; i++)
		give(live[i], 0, 0, NULL);
	return NULL;
}

static void threads(struct times *all)
{
	pthread_t thread[THREADS];
	struct job job[THREADS];
	for (int i = 0; i < THREADS; i++) {
		job[i] = (struct job){make_times(), (uint64_t)i + 1};
		pthread_create(&thread[i], NULL, churn_small, &job[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		memcpy(all->ns + all->n, job[i].times->ns, job[i].times->n * sizeof *all->ns);
		all->n += job[i].times->n;
		free(job[i].times);
	}
}

int main(int argc, char **argv)
{
	void *library = dlopen(argc > 1 ? argv[1] : "libgm.so", RTLD_NOW);
	if (!library || !(alloc = dlsym(library, "gm_try_malloc")) || !(give = dlsym(library, "gm_free"))) {
		fprintf(stderr, "latency: %s\n", dlerror());
		return 1;
	}
	struct times *a = make_times(), *b = make_times();
	printf("%-32s %8s %8s %8s %10s %8s %8s\n", "ns, without the clock's", "p50", "p99", "p99.9", "max", "<= p50",
	       "<= p99.9");
	exact_reuse(a, b, 64 << 20);
	print("malloc 64 MiB, exact reuse", a, 260, 10000);
	print("free 64 MiB", b, 120, 10000);
	exact_reuse(a, b, 4096);
	print("malloc 4 KiB, exact reuse", a, 260, 10000);
	print("free 4 KiB", b, 120, 10000);
	churn(a, 7);
	print("free+malloc, 50 to 400 live", a, 690, 10000);
	threads(a);
	print("free+malloc, 8 threads", a, 0, 10000);
	if (failures)
		fprintf(stderr, "latency: %d requests failed\n", (int)failures);
	return failures > 0;
}
