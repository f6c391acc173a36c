/* Random requests of one thread, after each of which the account must be that of a model; the snapshot, too, now and then. Then small
 * requests with little memory: what is free serves requests of every size and stream. */
#include "check.h"

#include <stdbool.h>

#define LIVE 300
#define STREAMS 4 /* at most; the first argument is their number */
#define UNIT 512

static uint64_t state = 88172645463325252;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

struct block {
	void *p;
	size_t size;
	int stream;
};

static struct block live[LIVE];
static int count;
static bool begun;
static CUstream streams[STREAMS];
static uint64_t stream_count;
static struct gm_stats model;
static int64_t marked; /* the peak since the last mark */

static void add(struct gm_counter *c, int64_t n)
{
	c->current += n;
	c->allocated += n;
	if (c->current > c->peak)
		c->peak = c->current;
}

static void subtract(struct gm_counter *c, int64_t n)
{
	c->current -= n;
	c->freed += n;
}

static void note(size_t size, void (*change)(struct gm_counter *c, int64_t n))
{
	int64_t taken = (int64_t)((size + UNIT - 1) / UNIT * UNIT);
	int kinds[] = {GM_ALL, taken <= (int64_t)MIB ? GM_SMALL : GM_LARGE};
	for (int i = 0; i < 2; i++) {
		change(&model.allocation[kinds[i]], 1);
		change(&model.allocated_bytes[kinds[i]], taken);
		change(&model.requested_bytes[kinds[i]], (int64_t)size);
	}
	if (model.allocated_bytes[GM_ALL].current > marked)
		marked = model.allocated_bytes[GM_ALL].current;
}

static bool same(const struct gm_counter *a, const struct gm_counter *b)
{
	return a->current == b->current && a->peak == b->peak && a->allocated == b->allocated && a->freed == b->freed;
}

static void check_account(void)
{
	struct gm_stats s = stats_of(0);
	CHECK(gm_marked_peak(0) == marked);
	for (int i = 0; i < GM_POOL_KINDS; i++) {
		CHECK(same(&s.allocation[i], &model.allocation[i]));
		CHECK(same(&s.allocated_bytes[i], &model.allocated_bytes[i]));
		CHECK(same(&s.requested_bytes[i], &model.requested_bytes[i]));
		CHECK(s.active_bytes[i].current >= s.allocated_bytes[i].current);
		CHECK(s.active_bytes[i].current <= s.reserved_bytes[GM_ALL].current);
	}
}

static void check_snapshot(void)
{
	static char text[1 << 20];
	static const char key[] = "\"requested_size\":";
	int64_t requested = 0, used = 0;
	CHECK(gm_snapshot(text, sizeof text) < sizeof text);
	for (const char *at = text; (at = strstr(at, key)); at++) /* of segments, and then of their blocks */
		requested += atoll(at + sizeof key - 1);
	for (const char *at = text; (at = strstr(at, "\"state\":\"active_allocated\"")); at++)
		used++;
	CHECK(requested == 2 * model.requested_bytes[GM_ALL].current);
	CHECK(used >= model.allocation[GM_ALL].current);
}

static void get(void)
{
	struct block b = {.size = 1 + draw(draw(8) || begun ? UINT64_C(1) << (6 + draw(15)) : 8 * MIB), .stream = (int)draw(stream_count)};
	size_t size = 0;
	b.p = gm_try_malloc(b.size, 0, streams[b.stream]);
	CHECK(b.p);
	note(b.size, add);
	if (draw(16) == 0)
		CHECK(gm_base_alloc(b.p, &size) == b.p && size == (b.size + UNIT - 1) / UNIT * UNIT && gm_device_of(b.p) == 0);
	live[count++] = b;
}

static void give(void)
{
	int i = (int)draw((uint64_t)count);
	struct block b = live[i];
	live[i] = live[--count];
	if (draw(8) == 0)
		gm_record_stream(b.p, streams[draw(stream_count)]);
	gm_free(b.p, (ssize_t)b.size, 0, streams[b.stream]);
	note(b.size, subtract);
	if (draw(16) == 0)
		CHECK(gm_device_of(b.p) == -1);
}

/* Blocks of a private pool are small here: of large ones the account has what PyTorch's allocator takes. */
static void pool(bool begin)
{
	if (begin && !begun) {
		gm_begin_pool(0, 1, 2, NULL);
	} else if (begun) {
		gm_end_pool(0, 1, 2);
		gm_release_pool(0, 1, 2);
	}
	begun = begin;
}

static void reset(bool peaks)
{
	struct gm_counter *all[] = {model.allocation, model.allocated_bytes, model.requested_bytes};
	for (int i = 0; i < 3; i++)
		for (int kind = 0; kind < GM_POOL_KINDS; kind++) {
			if (peaks)
				all[i][kind].peak = all[i][kind].current;
			else
				all[i][kind].allocated = all[i][kind].freed = 0;
		}
	if (peaks)
		gm_reset_peak_stats(0);
	else
		gm_reset_accumulated_stats(0);
}

static void mark(void)
{
	marked = model.allocated_bytes[GM_ALL].current;
	gm_mark_peak(0);
}

static void random_requests(void)
{
	for (int i = 0; i < 20000; i++) {
		uint64_t what = draw(1000);
		bool grow = i / 1000 % 2 == 0; /* to many live blocks, then to few */
		if (what < (grow ? 550 : 400) && count < LIVE)
			get();
		else if (what < 980 && count)
			give();
		else if (what < 990)
			check_snapshot();
		else if (what < 994)
			reset(what % 2);
		else if (what < 996)
			mark();
		else if (what == 999)
			gm_reset();
		else if (what == 998)
			pool(!begun);
		if (i % 16 == 0)
			check_account();
	}
	pool(false);
	while (count)
		give();
	check_account();
	OK(cuCtxSynchronize());
	gm_reset();
	gm_reset();
	struct gm_stats s = stats_of(0);
	CHECK(s.reserved_bytes[GM_ALL].current == 0 && s.active_bytes[GM_ALL].current == 0 && s.segment[GM_ALL].current == 0);
}

/* fill requests blocks of a size until there is no more memory, frees them, and returns how many bytes they were. */
static size_t fill(size_t size, CUstream stream)
{
	enum { MOST = 1 << 18 };
	static void *p[MOST];
	size_t n = 0;
	while (n < MOST && (p[n] = gm_try_malloc(size, 0, stream)))
		n++;
	CHECK(n < MOST);
	for (size_t i = 0; i < n; i++)
		gm_free(p[i * 7919 % n], 0, 0, stream); /* 7919 is a prime that n is no multiple of */
	return n * size;
}

static void little_memory(void)
{
	size_t few = 64 * MIB;
	gm_memory_fraction((double)few / (double)(141 * GIB), 0);
	static const size_t sizes[] = {512, 4096, 100 * 1024, 700 * 1024, 1000, MIB, 20 * MIB, 3000};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		CHECK(fill(sizes[i], streams[i % stream_count]) >= few / 2);
		CHECK(stats_of(0).allocation[GM_ALL].current == 0 && stats_of(0).ooms == (int64_t)i + 1);
	}
	gm_memory_fraction(1, 0);
	gm_reset();
}

int main(int argc, char **argv)
{
	stream_count = argc > 1 ? strtoull(argv[1], NULL, 10) : STREAMS;
	CHECK(stream_count >= 1 && stream_count <= STREAMS);
	start(0);
	gm_free(gm_try_malloc(1, 0, NULL), 0, 0, NULL);
	gm_reset_accumulated_stats(0);
	gm_reset_peak_stats(0);
	mark();
	for (int i = 1; i < STREAMS; i++)
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	random_requests();
	gm_reset_accumulated_stats(0);
	little_memory();
	return 0;
}
