/* What is written to a block is read back at its end, while blocks of many sizes on several streams come and go, and the account
 * adds up. */
#include "check.h"

#define SLOTS 60
#define ROUNDS 3000
#define STREAMS 3

static uint64_t state = 1;

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % below;
}

struct slot {
	void *p;
	size_t size;
	unsigned mark;
	CUstream stream;
};

static size_t size_of_request(void)
{
	switch (draw(3)) {
	case 0:
		return 1 + draw(4000);
	case 1:
		return 1 + draw(3 * MIB);
	}
	return (1 + draw(24)) * 3 * MIB;
}

/* Marks at the ends and at each 2 MiB, where pieces meet. */
static void mark(struct slot *s)
{
	for (size_t i = 0; i + 4 <= s->size; i += 2 * MIB)
		OK(cuMemsetD32Async(at(s->p) + i, s->mark + (unsigned)(i / MIB), 1, s->stream));
	OK(cuMemsetD8Async(at(s->p) + s->size - 1, (unsigned char)s->mark, 1, s->stream));
}

static void verify(struct slot *s)
{
	OK(cuStreamSynchronize(s->stream));
	unsigned char last;
	OK(cuMemcpyDtoH_v2(&last, at(s->p) + s->size - 1, 1));
	CHECK(last == (unsigned char)s->mark);
	for (size_t i = 0; i + 5 <= s->size; i += 2 * MIB) {
		unsigned word;
		OK(cuMemcpyDtoH_v2(&word, at(s->p) + i, 4));
		CHECK(word == s->mark + (unsigned)(i / MIB));
	}
}

static void check_account(const struct slot *slots)
{
	int64_t count = 0, bytes = 0;
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].p) {
			count++;
			bytes += (int64_t)slots[i].size;
		}
	struct gm_stats s = stats_of(0);
	CHECK(s.allocation[GM_ALL].current == count);
	CHECK(s.requested_bytes[GM_ALL].current == bytes);
	CHECK(s.allocated_bytes[GM_ALL].current >= bytes);
	CHECK(s.reserved_bytes[GM_ALL].current >= s.allocated_bytes[GM_ALL].current);
	const struct gm_counter *c = s.allocation;
	CHECK(c[GM_ALL].allocated == c[GM_SMALL].allocated + c[GM_LARGE].allocated);
	CHECK(c[GM_ALL].current == c[GM_ALL].allocated - c[GM_ALL].freed);
}

int main(void)
{
	static struct slot slots[SLOTS];
	CUstream streams[STREAMS] = {0};
	start(0);
	for (int i = 1; i < STREAMS; i++)
		OK(cuStreamCreate(&streams[i], 1));
	for (unsigned i = 1; i <= ROUNDS; i++) {
		struct slot *s = &slots[draw(SLOTS)];
		if (s->p) {
			verify(s);
			gm_free(s->p, (ssize_t)s->size, 0, s->stream);
			s->p = NULL;
			continue;
		}
		s->size = size_of_request();
		s->stream = streams[draw(STREAMS)];
		s->mark = i * 2654435761u;
		s->p = gm_try_malloc(s->size, 0, s->stream);
		CHECK(s->p);
		mark(s);
		if (i % 500 == 0)
			gm_reset();
		if (i % 100 == 0)
			check_account(slots);
	}
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].p) {
			verify(&slots[i]);
			gm_free(slots[i].p, (ssize_t)slots[i].size, 0, slots[i].stream);
		}
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current == 0);
	CHECK(stats_of(0).segment[GM_ALL].current == 0);
	CHECK(stats_of(0).active_bytes[GM_ALL].current == 0);
	return 0;
}
