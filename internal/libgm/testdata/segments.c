/* What the observer of segments is told: ranges that have memory, of which there is never less than what is taken from the driver. */
#include "check.h"

#define PAGE (2 * MIB)
#define PAGES 65536

static struct page {
	uint64_t address, stream;
} pages[PAGES];
static int count;
static int64_t bytes; /* in ranges of whole pages */
static int64_t times;
static uint64_t streams[2];

static struct page *find(uint64_t address)
{
	for (int i = 0; i < count; i++)
		if (address - pages[i].address < PAGE)
			return &pages[i];
	return NULL;
}

static void see(int device, int mapped, uint64_t address, uint64_t size, uint64_t stream)
{
	CHECK(device == 0 && size > 0 && size % PAGE == 0 && (stream == streams[0] || stream == streams[1]));
	times++;
	bytes += mapped ? (int64_t)size : -(int64_t)size;
	for (uint64_t at = address; at < address + size; at += PAGE) {
		struct page *p = find(at);
		if (mapped) {
			CHECK(!p && count < PAGES);
			pages[count++] = (struct page){at, stream};
		} else {
			CHECK(p && p->address == at && p->stream == stream);
			*p = pages[--count];
		}
	}
}

static void has(void *p, size_t size, uint64_t stream)
{
	for (size_t i = 0; i < size; i += PAGE)
		CHECK(find(at(p) + i) && find(at(p) + i)->stream == stream);
}

static void churn(void)
{
	void *p[24] = {0};
	size_t size[24];
	for (unsigned i = 0; i < 400; i++) {
		unsigned slot = i * 7 % 24, on = i / 8 % 2;
		gm_free(p[slot], 0, 0, NULL);
		size[slot] = (size_t)(1 + i * 13 % 29) * PAGE;
		CHECK((p[slot] = gm_try_malloc(size[slot], 0, (void *)(uintptr_t)streams[on])));
		CHECK(bytes >= stats_of(0).reserved_bytes[GM_ALL].current);
		if (i % 90 == 89)
			gm_reset();
	}
	for (unsigned slot = 0; slot < 24; slot++) {
		for (size_t i = 0; i < size[slot]; i += PAGE)
			CHECK(find(at(p[slot]) + i));
		gm_free(p[slot], 0, 0, NULL);
	}
}

int main(void)
{
	CUstream other;
	start(0);
	OK(cuStreamCreate(&other, 1));
	streams[1] = at(other);
	gm_observe_segments(see);
	void *p = gm_try_malloc(30 * MIB, 0, NULL), *q = gm_try_malloc(40 * MIB, 0, other), *small = gm_try_malloc(700, 0, other);
	CHECK(times >= 2 && bytes == stats_of(0).reserved_bytes[GM_ALL].current);
	has(p, 30 * MIB, streams[0]);
	has(q, 40 * MIB, streams[1]);
	has(small, 700, streams[1]);
	gm_free(p, 0, 0, NULL);
	gm_free(q, 0, 0, NULL);
	gm_free(small, 0, 0, NULL);
	gm_reset();
	CHECK(bytes == 0);
	churn();
	gm_reset();
	OK(cuCtxSynchronize());
	gm_reset();
	CHECK(bytes == 0 && stats_of(0).reserved_bytes[GM_ALL].current == 0);
	int64_t before = times;
	gm_observe_segments(NULL);
	gm_free(gm_try_malloc(30 * MIB, 0, NULL), 0, 0, NULL);
	gm_reset();
	CHECK(times == before);
	return 0;
}
