/* Each of the driver's calls that a scenario makes fails once, at each position, and once from there on. After each: what is live has its
 * contents, all memory goes back to the driver, and the scenario passes without a fault.
 * Arguments: a scenario, and the names of calls. It prints how many faults there were, and how many requests failed by a single one. */
#include "check.h"

#include <stdbool.h>

#include "fake_fault.h"

#define SLOTS 200
#define POOL 0, 3, 4
#define SPARE 0, 0, 5

static struct slot {
	void *p;
	size_t size;
	unsigned word;
	bool lost; /* its contents are not known */
} slots[SLOTS];
static unsigned words, failed;
static CUstream streams[2];
static size_t initially, whole; /* bytes of the device that were free, and all */

/* take makes a request and writes into it. */
static void *take(int slot, size_t size, CUstream stream)
{
	struct slot *s = &slots[slot];
	CHECK(!s->p);
	*s = (struct slot){gm_try_malloc(size, 0, stream), size, ++words, false};
	if (!s->p) {
		failed++;
		return NULL;
	}
	OK(cuMemsetD32Async(at(s->p), s->word, 1, NULL));
	OK(cuMemsetD32Async(at(s->p) + (size - 4) / 4 * 4, s->word, 1, NULL));
	return s->p;
}

static void check(const struct slot *s)
{
	unsigned word;
	OK(cuMemcpyDtoH_v2(&word, at(s->p), 4));
	CHECK(word == s->word);
	OK(cuMemcpyDtoH_v2(&word, at(s->p) + (s->size - 4) / 4 * 4, 4));
	CHECK(word == s->word);
}

static void drop(int slot)
{
	struct slot *s = &slots[slot];
	if (s->p && !s->lost)
		check(s);
	gm_free(s->p, 0, 0, NULL);
	s->p = NULL;
}

/* Small requests on two streams: segments that C serves from, blocks that come back from other streams, segments that are taken back. */
static void small(void)
{
	for (int i = 0; i < 120; i++)
		take(i, 20000 + (size_t)i * 800, streams[i % 2]);
	for (int i = 0; i < 120; i += 3) {
		if (slots[i].p)
			gm_record_stream(slots[i].p, streams[(i + 1) % 2]);
		drop(i);
	}
	for (int i = 0; i < 60; i += 3)
		take(i, MIB - 512 * (size_t)i, streams[i % 2]);
	gm_reset();
	for (int i = 0; i < 120; i += 2)
		drop(i);
	gm_reset(); /* some segments are free */
	take(120, 30 * MIB, NULL);
	take(121, 5 * MIB, streams[0]);
	for (int i = 0; i < 120; i += 2)
		take(i, 4000, streams[i % 2]);
	for (int i = 0; i < 122; i++)
		drop(i);
}

/* A full device: what C has free serves a large request, and a large one's memory small ones. */
static void full(void)
{
	gm_memory_fraction(40.0 * MIB / (double)whole, 0);
	for (int i = 0; i < 90; i++)
		take(i, 300000, streams[i % 2]);
	for (int i = 0; i < 90; i++)
		if (i % 30)
			drop(i);
	take(90, 20 * MIB, NULL);
	drop(90);
	for (int i = 91; i < 150; i++)
		take(i, 300000, NULL);
	for (int i = 0; i < 150; i++)
		if (slots[i].p)
			drop(i);
	gm_memory_fraction(1, 0);
}

static void *in_capture(int slot, size_t size, CUstream s)
{
	slots[slot] = (struct slot){gm_try_malloc(size, 0, s), size, 0, true};
	failed += !slots[slot].p;
	return slots[slot].p;
}

/* A capture with a pool of its own, of which memory is freed, recorded and taken again; then a pool that serves others when memory is short. */
static void pools(void)
{
	CUgraph graph;
	CUstream s = streams[0], other = streams[1];
	take(0, 9 * MIB, s);
	take(1, 3000, s);
	gm_begin_pool(POOL, NULL);
	OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (int i = 2; i < 10; i++)
		in_capture(i, i % 2 ? 3000 * (size_t)i : (size_t)i * 3 * MIB, s);
	for (int i = 2; i < 6; i++) {
		if (i > 3 && slots[i].p)
			gm_record_stream(slots[i].p, other);
		drop(i);
		in_capture(i, i % 2 ? 2000 : 4 * MIB, s);
	}
	if (slots[0].p)
		gm_record_stream(slots[0].p, other);
	slots[1].lost = true; /* nothing is read now */
	drop(1);
	gm_reset();
	OK(cuStreamEndCapture(s, &graph));
	gm_end_pool(POOL);
	take(10, 9 * MIB, s);
	drop(0);
	gm_reset();
	for (int i = 2; i < 11; i++)
		drop(i);
	gm_release_pool(POOL);
	gm_reset_pool(POOL);

	CHECK(gm_retain_pool(SPARE) == 0);
	gm_begin_pool(SPARE, NULL);
	take(0, 20 * MIB, NULL);
	take(1, 50000, NULL);
	gm_end_pool(SPARE);
	drop(0);
	gm_pool_use_on_oom(SPARE, 1);
	gm_memory_fraction(0, 0);
	unsigned before = failed;
	take(0, 19 * MIB, NULL);
	failed = before; /* by way of a fault there may be none to spare */
	gm_memory_fraction(1, 0);
	drop(0);
	drop(1);
	gm_release_pool(SPARE);
	gm_release_pool(SPARE);
	gm_reset_pool(SPARE);
}

static bool same(const struct gm_live *a, int64_t n, const struct gm_live *b, int64_t m)
{
	int64_t found = 0;
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < m; j++)
			found += a[i].address == b[j].address && a[i].size == b[j].size;
	return n == m && found == n;
}

/* bring restores a state of the pool, or leaves all as it was; the slots follow. */
static bool bring(const struct gm_live *to, int64_t n)
{
	struct gm_live before[16], after[16];
	int64_t b = gm_pool_live(POOL, before, 16);
	bool done = gm_pool_restore(POOL, to, (size_t)n) == 0;
	int64_t a = gm_pool_live(POOL, after, 16);
	CHECK(done ? same(after, a, to, n) : same(after, a, before, b));
	return done;
}

/* The state of a pool is brought back, and another one, as a tree of graphs needs it. */
static void restore(void)
{
	struct gm_live first[16], then[16];
	gm_begin_pool(POOL, NULL);
	for (int i = 0; i < 6; i++)
		take(i, i % 2 ? 3 * MIB + 5000 * (size_t)i : 700 + 5000 * (size_t)i, NULL);
	drop(1);
	drop(2);
	gm_end_pool(POOL);
	int64_t n = gm_pool_live(POOL, first, 16), m;
	gm_begin_pool(POOL, NULL);
	drop(3);
	drop(4);
	for (int i = 6; i < 9; i++)
		take(i, i % 2 ? 4 * MIB : 9000, NULL);
	if (slots[5].p)
		gm_record_stream(slots[5].p, streams[0]);
	if (slots[7].p)
		gm_record_stream(slots[7].p, streams[1]);
	gm_end_pool(POOL);
	m = gm_pool_live(POOL, then, 16);
	for (int i = 0; i < 9; i++)
		if (slots[i].p)
			check(&slots[i]);
	bring(first, n);
	bring(then, m);
	bring(first, n);
	bring(NULL, 0);
	struct gm_live rest[16];
	int64_t left = gm_pool_live(POOL, rest, 16);
	for (int64_t i = 0; i < left; i++)
		gm_free((void *)(uintptr_t)rest[i].address, 0, 0, NULL);
	memset(slots, 0, sizeof slots);
	gm_release_pool(POOL);
	gm_release_pool(POOL);
	gm_reset_pool(POOL);
}

static const struct { const char *name; void (*run)(void); } scenarios[] = {
	{"small", small}, {"full", full}, {"pools", pools}, {"restore", restore}};

/* nothing_left checks that all memory has been returned. */
static void nothing_left(void)
{
	size_t free, total;
	gm_reset();
	gm_reset(); /* what failed the first time */
	struct gm_stats s = stats_of(0);
	CHECK(s.allocation[GM_ALL].current == 0 && s.allocated_bytes[GM_ALL].current == 0 && s.active_bytes[GM_ALL].current == 0);
	CHECK(s.reserved_bytes[GM_ALL].current == 0);
	OK(cuMemGetInfo_v2(&free, &total));
	CHECK(free == initially);
	CHECK(gm_pool_uses(POOL) == -1 && gm_pool_uses(SPARE) == -1);
}

static const char *now = "";

static void where(void)
{
	if (*now)
		fprintf(stderr, "at %s\n", now);
}

int main(int argc, char **argv)
{
	static const CUresult errors[] = {2, 1, 700, 999};
	unsigned long faults = 0;
	unsigned lost = 0;
	void (*run)(void) = NULL;
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		if (!strcmp(scenarios[i].name, argv[1]))
			run = scenarios[i].run;
	CHECK(run);
	atexit(where);
	start(0);
	for (int i = 0; i < 2; i++)
		OK(cuStreamCreate(&streams[i], 1));
	gm_free(gm_try_malloc(1000, 0, NULL), 0, 0, NULL);
	gm_reset();
	OK(cuMemGetInfo_v2(&initially, &whole));
	run();
	nothing_left();
	CHECK(failed == 0);
	for (int call = 2; call < argc; call++)
		for (int onwards = 0; onwards < 2; onwards++)
			for (unsigned long position = 1, hit = 1; hit; position++) {
				CUresult error = errors[(position + (unsigned)call) % 4];
				char text[100];
				snprintf(text, sizeof text, "%s:%lu%s=%d", argv[call], position, onwards ? "+" : "", error);
				now = text;
				unsigned long before = fake_fault_count();
				failed = 0;
				fake_fault_at(argv[call], position, onwards, error);
				run();
				fake_fault_at(NULL, 0, false, 0);
				hit = fake_fault_count() - before;
				faults += hit;
				if (failed && !onwards)
					fprintf(stderr, "%u requests fail at %s\n", failed, now);
				lost += onwards ? 0 : failed;
				nothing_left();
				failed = 0;
				run();
				CHECK(failed == 0);
				nothing_left();
			}
	now = "";
	printf("%lu %u\n", faults, lost);
	return 0;
}
