/* Two devices of one process copy to each other, and write each other's memory: what was there before the second was used, what came later,
 * and what came back after it was given to the driver. */
#include "check.h"

#include <pthread.h>

/* cross fills memory on a device, copies it to the other in a stream of either, and reads it there. */
static void cross(const unsigned *from, unsigned *to, size_t words, int device, unsigned mark)
{
	unsigned first, last;
	start(device);
	OK(cuMemsetD32_v2(at(from), mark, words));
	OK(cuMemcpyDtoD_v2(at(to), at(from), 4 * words));
	OK(cuMemcpyDtoH_v2(&first, at(to), 4));
	OK(cuMemcpyDtoH_v2(&last, at(to + words - 1), 4));
	CHECK(first == mark && last == mark);
}

static unsigned *get(int device, size_t words)
{
	unsigned *p = gm_try_malloc(4 * words, device, NULL);
	CHECK(p);
	return p;
}

static void *first_use(void *argument)
{
	int device = *(int *)argument;
	start(device);
	gm_free(get(device, 100), 400, device, NULL);
	return NULL;
}

int main(void)
{
	static const size_t sizes[] = {100, MIB / 4, 5 * MIB / 4, 10 * MIB}; /* words */
	unsigned *before = get(0, 5 * MIB), mark = 1;
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			unsigned *a = get(0, sizes[i]), *b = get(1, sizes[i]);
			for (int device = 0; device < 2; device++) {
				cross(a, b, sizes[i], device, mark++);
				cross(b, a, sizes[i], device, mark++);
				cross(before, b, sizes[i] < 5 * MIB ? sizes[i] : 5 * MIB, device, mark++);
			}
			gm_free(a, 0, 0, NULL);
			gm_free(b, 0, 1, NULL);
		}
		gm_reset();
	}
	gm_free(before, 0, 0, NULL);
	pthread_t threads[4]; /* that use devices first at the same time */
	int devices[4] = {2, 3, 3, 2};
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, first_use, &devices[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	unsigned *c = get(2, 2 * MIB), *d = get(3, 2 * MIB);
	cross(c, d, 2 * MIB, 2, mark);
	cross(d, c, 2 * MIB, 2, mark);
	gm_free(c, 0, 2, NULL);
	gm_free(d, 0, 3, NULL);
	gm_reset();
	for (int i = 0; i < 4; i++)
		CHECK(stats_of(i).reserved_bytes[GM_ALL].current == 0);
	return 0;
}
