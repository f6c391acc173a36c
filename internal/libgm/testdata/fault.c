/* A job that goes on whatever call of the driver fails (GM_FAKE_FAIL), and gives everything back. It prints how many requests failed,
 * the bytes that are still held, and how many calls of the driver failed. An argument is what sizes are divided by. */
#include "check.h"

#include "fake_fault.h"

#define SLOTS 12

/* TWICE is for calls of the program itself, of which one may be the one that fails. */
#define TWICE(call) CHECK((call) == 0 || (call) == 0)

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1000, 3 * MIB, 700000, 40 * MIB, 64 * MIB, 9 * MIB, 128 * MIB, 4096};
	struct { void *p; size_t size; } slots[SLOTS] = {{0}};
	CUstream side;
	int failed = 0;
	size_t divisor = argc > 1 ? (size_t)atoi(argv[1]) : 1;
	gm_free(gm_try_malloc(512, 0, NULL), 0, 0, NULL); /* the device is opened without a fault */
	CUcontext ctx;
	TWICE(cuInit(0));
	TWICE(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	OK(cuStreamCreate(&side, 1));
	for (unsigned i = 0; i < 200; i++) {
		unsigned slot = i * 7 % SLOTS;
		if (slots[slot].p) {
			unsigned word;
			OK(cuMemcpyDtoH_v2(&word, at(slots[slot].p), 4));
			CHECK(word == i - SLOTS);
			gm_free(slots[slot].p, 0, 0, NULL);
		}
		size_t size = sizes[i % 8] * (1 + i / 50) / divisor;
		slots[slot].p = gm_try_malloc(size, 0, NULL);
		if (!slots[slot].p) {
			failed++;
			continue;
		}
		OK(cuMemsetD32Async(at(slots[slot].p), i, 1, NULL));
		OK(cuMemsetD8Async(at(slots[slot].p) + size - 1, 1, 1, NULL));
		if (i % 5 == 0)
			gm_record_stream(slots[slot].p, side);
		if (i % 60 == 59)
			gm_reset();
	}
	for (int i = 0; i < SLOTS; i++)
		gm_free(slots[i].p, 0, 0, NULL);
	gm_reset();
	gm_reset(); /* what failed the first time */
	struct gm_stats s = stats_of(0);
	CHECK(s.allocation[GM_ALL].current == 0);
	printf("%d %lld %lu\n", failed, (long long)s.reserved_bytes[GM_ALL].current, fake_fault_count());
	return 0;
}
