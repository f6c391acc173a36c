/* The live requests of a private pool are brought back to what they were, as graphs that share a pool as a tree need it. */
#include "check.h"

#include <stdbool.h>

#define ID 0, 3, 4

static bool large; /* the allocator brings back requests of more than 1 MiB */

static size_t size_of(size_t i) { return (large ? 3 * MIB : 700) + 5000 * i; }

static void *get(size_t i)
{
	void *p = gm_try_malloc(size_of(i), 0, NULL);
	CHECK(p);
	return p;
}

static size_t live(struct gm_live *blocks, size_t room)
{
	int64_t n = gm_pool_live(ID, blocks, room);
	CHECK(n >= 0);
	return (size_t)n;
}

static const struct gm_live *find(const struct gm_live *blocks, size_t n, const void *p)
{
	for (size_t i = 0; i < n; i++)
		if (blocks[i].address == at(p))
			return &blocks[i];
	return NULL;
}

static void refused(struct gm_live *blocks, size_t n, const char *why)
{
	char text[400];
	struct gm_live before[16], after[16];
	size_t count = live(before, 16);
	CHECK(gm_pool_restore(ID, blocks, n) == -1 && gm_last_error(text, sizeof text) > 0 && strstr(text, why));
	CHECK(live(after, 16) == count && !memcmp(before, after, count * sizeof *before));
}

int main(void)
{
	struct gm_live first[16], then[16];
	CUstream other;
	start(0);
	large = getenv("GM_ALLOC") && strcmp(getenv("GM_ALLOC"), "gmlake");
	CHECK(gm_pool_live(ID, NULL, 0) == -1);
	void *outside = gm_try_malloc(1000, 0, NULL);
	CHECK(gm_pool_live(ID, NULL, 0) == -1 && gm_pool_restore(ID, NULL, 0) == -1);
	OK(cuStreamCreate(&other, 1));
	gm_begin_pool(ID, NULL);
	void *a = get(0), *b = get(1), *c = get(2), *d = get(3);
	gm_free(b, 0, 0, NULL);
	gm_end_pool(ID);
	size_t n = live(first, 16);
	CHECK(n == 3 && find(first, n, c)->size == (int64_t)size_of(2) && !find(first, n, outside) && live(NULL, 0) == 3);

	gm_begin_pool(ID, NULL);
	gm_free(c, 0, 0, NULL);
	gm_free(d, 0, 0, NULL);
	gm_record_stream(a, other); /* the one that stays */
	void *e = get(4), *f = get(5);
	gm_end_pool(ID);
	size_t m = live(then, 16);
	CHECK(m == 3 && find(then, m, e) && find(then, m, f));
	gm_record_stream(f, other);

	int64_t reserved = stats_of(0).reserved_bytes[GM_ALL].current;
	CHECK(gm_pool_restore(ID, first, n) == 0);
	struct gm_stats s = stats_of(0);
	CHECK(s.reserved_bytes[GM_ALL].current == reserved && s.allocation[GM_ALL].current == 4);
	CHECK(s.requested_bytes[GM_ALL].current == (int64_t)(1000 + size_of(0) + size_of(2) + size_of(3)));
	struct gm_live now[16];
	CHECK(live(now, 16) == n && find(now, n, c)->size == (int64_t)size_of(2) && find(now, n, a) && find(now, n, d));
	CHECK(gm_device_of(c) == 0 && gm_device_of(f) == (find(now, n, f) ? 0 : -1));

	for (int i = 0; i < 3; i++) {
		CHECK(gm_pool_restore(ID, then, m) == 0 && live(now, 16) == m && find(now, m, e) && find(now, m, f));
		CHECK(gm_pool_restore(ID, first, n) == 0);
	}
	struct gm_live odd[] = {first[0], first[0]};
	refused(odd, 2, "not in free memory");
	odd[0].address = at(outside);
	refused(odd, 1, "not in free memory");
	odd[0] = first[0];
	odd[0].stream = at(other);
	refused(odd, 1, "not in free memory");
	odd[0].size = -1;
	refused(odd, 1, "not a size");
	CHECK(gm_pool_restore(0, 77, 0, first, 1) == -1 && gm_pool_restore(31, 3, 4, first, 1) == -1 && gm_pool_restore(-1, 3, 4, first, 1) == -1);

	CHECK(gm_pool_restore(ID, NULL, 0) == 0 && live(NULL, 0) == 0);
	gm_free(outside, 0, 0, NULL);
	s = stats_of(0);
	CHECK(s.allocation[GM_ALL].current == 0 && s.allocated_bytes[GM_ALL].current == 0 && s.active_bytes[GM_ALL].current == 0);
	gm_release_pool(ID);
	gm_release_pool(ID);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current == 0 && gm_pool_live(ID, NULL, 0) == -1);
	return 0;
}
