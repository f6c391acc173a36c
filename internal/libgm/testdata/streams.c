/* Memory that another stream still uses is not handed out before that stream has come so far. */
#include "check.h"

#include <pthread.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void at_gate(void *data)
{
	(void)data;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

static void hold(CUstream s)
{
	pthread_mutex_lock(&gate);
	OK(cuLaunchHostFunc(s, at_gate, NULL));
}

static int overlaps(char *a, char *b, size_t size) { return a < b + size && b < a + size; }

/* While side, which used it, is held, a block is not reused; then it is. */
static void lent(size_t size, CUstream own, CUstream side)
{
	char *p = gm_try_malloc(size, 0, own);
	CHECK(p);
	gm_record_stream(p, side);
	hold(side);
	OK(cuMemsetD32Async(at(p), 7, 1, side));
	gm_free(p, 0, 0, own);
	char *q = gm_try_malloc(size, 0, own), *r = gm_try_malloc(size, 0, side);
	CHECK(q && r && !overlaps(p, q, size) && !overlaps(p, r, size));
	pthread_mutex_unlock(&gate);
	OK(cuCtxSynchronize());
	unsigned word;
	OK(cuMemcpyDtoH_v2(&word, at(p), 4));
	CHECK(word == 7);
	gm_free(q, 0, 0, own);
	gm_free(r, 0, 0, side);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current == 0 && stats_of(0).active_bytes[GM_ALL].current == 0);
}

/* A block of a stream that is held is not handed to another stream that could write first. */
static void crossing(size_t size, CUstream a, CUstream b)
{
	unsigned word = 0;
	char *p = gm_try_malloc(size, 0, a);
	CHECK(p);
	hold(a);
	OK(cuMemsetD32Async(at(p), 1, 1, a));
	gm_free(p, 0, 0, a);
	char *q = gm_try_malloc(size, 0, b);
	CHECK(q);
	OK(cuMemsetD32Async(at(q), 2, 1, b));
	pthread_mutex_unlock(&gate);
	OK(cuStreamSynchronize(a));
	OK(cuStreamSynchronize(b));
	OK(cuMemcpyDtoH_v2(&word, at(q), 4));
	CHECK(word == 2);
	gm_free(q, 0, 0, b);
	gm_reset();
}

/* The handle of the threads' own default streams means another stream in each thread. */
static void *other_thread(void *p)
{
	start(0);
	char *q = gm_try_malloc(3 * MIB, 0, (void *)(uintptr_t)2);
	CHECK(q && !overlaps(p, q, 3 * MIB));
	gm_free(q, 0, 0, (void *)(uintptr_t)2);
	return NULL;
}

static void per_thread(void)
{
	CUstream own = (CUstream)(uintptr_t)2;
	char *p = gm_try_malloc(3 * MIB, 0, own);
	CHECK(p);
	hold(own);
	OK(cuMemsetD32Async(at(p), 1, 1, own));
	gm_free(p, 0, 0, own);
	pthread_t thread;
	pthread_create(&thread, NULL, other_thread, p);
	pthread_join(thread, NULL);
	pthread_mutex_unlock(&gate);
	OK(cuCtxSynchronize());
	int64_t reserved = stats_of(0).reserved_bytes[GM_ALL].current;
	p = gm_try_malloc(3 * MIB, 0, own);
	CHECK(p && stats_of(0).reserved_bytes[GM_ALL].current == reserved); /* now it is reused */
	gm_free(p, 0, 0, own);
}

/* The handle of a default stream does not tell which device's it is. */
static void of_other_device(size_t size, CUstream own, void *handle)
{
	char *p = gm_try_malloc(size, 0, own);
	CHECK(p);
	gm_record_stream(p, handle);
	start(1);
	hold(NULL);
	start(0);
	gm_free(p, 0, 0, own);
	char *q = gm_try_malloc(size, 0, own);
	CHECK(q && !overlaps(p, q, size));
	gm_free(q, 0, 0, own);
	pthread_mutex_unlock(&gate);
	start(1);
	OK(cuCtxSynchronize());
	start(0);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current == 0 && stats_of(0).active_bytes[GM_ALL].current == 0);
}

static void other_device(CUstream own)
{
	start(1);
	CHECK(gm_try_malloc(1000, 1, NULL)); /* from now on it is known that there is one */
	start(0);
	for (uintptr_t handle = 0; handle <= 2; handle++) {
		of_other_device(1000, NULL, (void *)handle);
		of_other_device(5 * MIB, NULL, (void *)handle);
		of_other_device(5 * MIB, own, (void *)handle);
	}
}

int main(void)
{
	CUstream a, b;
	start(0);
	OK(cuStreamCreate(&a, 1));
	OK(cuStreamCreate(&b, 1));
	for (size_t size = 1000; size < 100 * MIB; size *= 40) {
		lent(size, NULL, a);
		lent(size, b, a);
		crossing(size, a, b);
	}
	per_thread();
	char *p = gm_try_malloc(MIB, 0, NULL); /* 0 and 1 are one stream */
	gm_free(p, 0, 0, NULL);
	CHECK(gm_try_malloc(MIB, 0, (void *)(uintptr_t)1) == p);
	gm_free(p, 0, 0, NULL);
	other_device(a);
	return 0;
}
