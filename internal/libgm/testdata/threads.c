/* Eight threads with a stream each, whose blocks are freed by the next one. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 8
#define ROUNDS 1500
#define BOX 16

static _Atomic(void *) boxes[THREADS][BOX];

static void verify(unsigned *p)
{
	unsigned first, last;
	OK(cuMemcpyDtoH_v2(&first, at(p), 4));
	OK(cuMemcpyDtoH_v2(&last, at(p + 255), 4));
	CHECK(first == last && first);
}

static void *work(void *argument)
{
	size_t me = (size_t)argument;
	CUstream s;
	start(0);
	OK(cuStreamCreate(&s, 1));
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t size = 1024 + i * 7919 % (i % 10 ? 100000 : 9 * MIB);
		unsigned *p = gm_try_malloc(size, 0, s), mark = (unsigned)(me << 24) + i + 1;
		CHECK(p);
		OK(cuMemsetD32Async(at(p), mark, 1, s));
		OK(cuMemsetD32Async(at(p + 255), mark, 1, s));
		OK(cuStreamSynchronize(s));
		unsigned *mine = atomic_exchange(&boxes[(me + 1) % THREADS][i % BOX], p);
		if (mine) {
			verify(mine);
			gm_free(mine, 0, 0, NULL);
		}
		mine = atomic_exchange(&boxes[me][i * 5 % BOX], NULL);
		if (mine) {
			verify(mine);
			gm_free(mine, 0, 0, NULL);
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < THREADS; i++)
		for (size_t j = 0; j < BOX; j++)
			gm_free(boxes[i][j], 0, 0, NULL);
	gm_reset();
	struct gm_stats s = stats_of(0);
	CHECK(s.allocation[GM_ALL].current == 0 && s.reserved_bytes[GM_ALL].current == 0);
	CHECK(s.allocation[GM_ALL].allocated == THREADS * ROUNDS && s.allocation[GM_ALL].freed == THREADS * ROUNDS);
	return 0;
}
