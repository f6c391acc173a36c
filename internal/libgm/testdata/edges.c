/* Requests and frees that make no sense, and the calls before anything was allocated. */
#include "check.h"

static void *odd(void) { return (void *)(uintptr_t)0x12345600; }

static void before(void)
{
	struct gm_stats s;
	size_t size = 1;
	char text[64];
	gm_init(4);
	CHECK(gm_last_error(text, sizeof text) == 0 && !*text);
	gm_free(odd(), 1, 0, NULL);
	gm_free(NULL, 0, 0, NULL);
	gm_record_stream(odd(), NULL);
	gm_reset();
	gm_reset_peak_stats(0);
	gm_release_pool(0, 1, 2);
	gm_end_pool(0, 1, 2);
	gm_reset_pool(0, 1, 2);
	gm_pool_use_on_oom(0, 1, 2, 1);
	CHECK(gm_pool_uses(0, 1, 2) == -1);
	CHECK(gm_pool_live(0, 1, 2, NULL, 0) == -1 && gm_pool_restore(0, 1, 2, NULL, 0) == -1);
	CHECK(gm_last_error(text, sizeof text) > 0);
	CHECK(gm_base_alloc(odd(), &size) == NULL && size == 0);
	CHECK(gm_share(odd(), text, sizeof text) == 0);
	gm_close_shared(odd());
	CHECK(gm_get_stats(0, &s) == -1);
	CHECK(gm_blocks(0, NULL, 0) == -1 && gm_find(0, odd(), NULL) == -1);
	CHECK(gm_snapshot(text, sizeof text) == 2 && !strcmp(text, "[]"));
	CHECK(strlen(gm_version()) > 0);
}

static void sizes(void)
{
	char text[4096];
	CHECK(!gm_try_malloc(0, 0, NULL) && !gm_malloc(0, 0, NULL));
	CHECK(!gm_try_malloc((size_t)1 << 62, 0, NULL) && !gm_try_malloc(SIZE_MAX, 0, NULL) && !gm_malloc(-1, 0, NULL));
	CHECK(!gm_try_malloc(1, -1, NULL) && !gm_try_malloc(1, 31, NULL) && !gm_try_malloc(1, 1000, NULL));
	CHECK(!gm_malloc((ssize_t)200 * (ssize_t)GIB, 0, NULL)); /* no PyTorch here: nothing is thrown */
	size_t n = gm_last_error(text, sizeof text);
	CHECK(n == strlen(text) && !strncmp(text, "CUDA out of memory. Tried to allocate 200.00 GiB. GPU 0 has a total capacity of ", 70));
	CHECK(gm_last_error(text, 5) == n && !strcmp(text, "CUDA"));
	CHECK(gm_last_error(NULL, 0) == n);
}

static void addresses(void)
{
	char *p = gm_try_malloc(5 * MIB, 0, NULL);
	size_t size = 0;
	CHECK(p && gm_base_alloc(p, &size) == p && size >= 5 * MIB);
	CHECK(gm_base_alloc(p + MIB, &size) == p && gm_base_alloc(odd(), &size) == NULL);
	int64_t live = stats_of(0).allocation[GM_ALL].current;
	gm_free(odd(), 1, 0, NULL); /* a line on standard error */
	gm_free(p, 0, 7, NULL);     /* a device that was never used */
	CHECK(stats_of(0).allocation[GM_ALL].current == live);
	gm_free(p, 0, 0, NULL);
	gm_free(p, 0, 0, NULL); /* a second line */
	CHECK(stats_of(0).allocation[GM_ALL].current == live - 1);
}

static void fraction(void)
{
	gm_memory_fraction(0.001, 0); /* of 141 GiB: 144 MiB */
	CHECK(!gm_try_malloc(200 * MIB, 0, NULL));
	void *p = gm_try_malloc(100 * MIB, 0, NULL);
	CHECK(p);
	gm_memory_fraction(1, 0);
	void *q = gm_try_malloc(200 * MIB, 0, NULL);
	CHECK(q);
	gm_free(p, 0, 0, NULL);
	gm_free(q, 0, 0, NULL);
}

static void counters(void)
{
	gm_reset();
	gm_reset_peak_stats(0);
	gm_reset_accumulated_stats(0);
	void *p = gm_try_malloc(3 * MIB, 0, NULL);
	gm_free(p, 0, 0, NULL);
	struct gm_stats s = stats_of(0);
	CHECK(s.allocation[GM_ALL].peak == 1 && s.allocation[GM_LARGE].allocated == 1 && s.allocation[GM_SMALL].allocated == 0);
	CHECK(s.requested_bytes[GM_ALL].peak == 3 * MIB && s.requested_bytes[GM_ALL].freed == 3 * MIB);
	CHECK(s.driver_calls > 0 && s.driver_ns > 0);
	gm_reset_accumulated_stats(0);
	s = stats_of(0);
	CHECK(s.driver_calls == 0 && s.allocation[GM_ALL].allocated == 0 && s.requested_bytes[GM_ALL].peak == 3 * MIB);
	gm_reset_peak_stats(0);
	CHECK(stats_of(0).requested_bytes[GM_ALL].peak == 0);
}

static void described(int64_t size)
{
	void *p = gm_try_malloc((size_t)size, 0, NULL);
	struct gm_block one, all[64];
	OK(gm_find(0, p, &one));
	CHECK(one.address == at(p) && one.requested == size && one.size >= one.requested && one.state == GM_USED && one.small == (size <= (int64_t)MIB));
	CHECK(gm_find(0, (char *)p + 1, &one) == -1 && gm_find(0, NULL, &one) == -1);
	int64_t n = gm_blocks(0, all, 64), found = 0;
	CHECK(n > 0 && n <= 64 && gm_blocks(0, NULL, 0) == n);
	for (int64_t i = 0; i < n; i++) {
		CHECK(all[i].segment <= all[i].address && (i == 0 || all[i].address > all[i - 1].address));
		CHECK((all[i].state == GM_USED) == (all[i].requested > 0));
		found += all[i].address == at(p) && all[i].requested == size && all[i].small == one.small;
	}
	CHECK(found == 1);
	gm_free(p, 0, 0, NULL);
	CHECK(gm_find(0, p, &one) == -1);
}

int main(void)
{
	before();
	start(0);
	sizes();
	addresses();
	fraction();
	counters();
	described(3 * MIB - 5);
	described(700);
	return 0;
}
