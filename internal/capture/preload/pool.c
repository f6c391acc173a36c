/* Memory pools: the allocations in them, and the device memory that they hold. */
#include "quiet.h"
#include "tell.h"

#define MAX_POOLS 64
#define SAMPLE_NS 1000000 /* asking a pool for its size takes 0.7 us: too long for every allocation */

struct pool {
	_Atomic(void *) pool;
	_Atomic uint64_t held, sampled_ns;
};

static struct pool pools[MAX_POOLS];

DRIVER(cuMemPoolGetAttribute, (void *pool, int attribute, void *value))
DRIVER(cuDeviceGetMemPool, (void **pool, int device))

static struct pool *known(void *handle)
{
	for (int i = 0; i < MAX_POOLS; i++)
		if (atomic_load_explicit(&pools[i].pool, memory_order_relaxed) == handle)
			return &pools[i];
	return NULL;
}

/* pool_of returns the entry of a pool; NULL if there are too many pools. */
static struct pool *pool_of(void *handle)
{
	struct pool *p = known(handle);
	for (int i = 0; !p && i < MAX_POOLS; i++) {
		void *expected = NULL;
		if (atomic_compare_exchange_strong(&pools[i].pool, &expected, handle))
			p = &pools[i];
	}
	return p;
}

static void forget(void *handle)
{
	for (struct pool *p; handle && (p = known(handle));) { /* two entries, if two threads met the pool at once */
		atomic_store(&p->held, 0);
		atomic_store(&p->sampled_ns, 0);
		atomic_store(&p->pool, NULL);
	}
}

/* sample records what a pool holds, if that has changed. */
static void sample(void *handle, int device, void *caller)
{
	uint64_t held;
	struct pool *p = pool_of(handle);
	if (CALL(cuMemPoolGetAttribute, handle, CU_POOL_RESERVED, &held) != CU_SUCCESS)
		return;
	if (p) {
		atomic_store_explicit(&p->sampled_ns, gm_now(), memory_order_relaxed);
		if (atomic_exchange(&p->held, held) == held)
			return;
	}
	struct gm_record r = {.kind = GM_POOL_SIZE, .device = (int16_t)device, .b = held, .d = (uint64_t)handle};
	gm_tell(&r, caller);
}

static void sample_sometimes(void *handle, int device, void *caller)
{
	struct pool *p = pool_of(handle);
	if (!p || gm_now() - atomic_load_explicit(&p->sampled_ns, memory_order_relaxed) > SAMPLE_NS)
		sample(handle, device, caller);
}

static int allocated(int result, uint64_t address, size_t size, void *pool, void *stream, void *caller)
{
	GM_QUIETLY;
	int device = gm_device();
	if (!pool && CALL(cuDeviceGetMemPool, &pool, device) != CU_SUCCESS)
		pool = NULL;
	struct gm_record r = {
		.kind = GM_POOL_ALLOC, .device = (int16_t)device, .a = address, .b = size, .c = (uint64_t)stream, .d = (uint64_t)pool};
	gm_came(result, r, caller);
	if (result == CU_SUCCESS && pool && gm_on())
		sample_sometimes(pool, device, caller);
	return result;
}

int cuMemAllocAsync(uint64_t *p, size_t size, void *stream)
{
	int result = REAL(cuMemAllocAsync, p, size, stream);
	return allocated(result, GOT(result, p), size, NULL, stream, CALLER);
}

int cuMemAllocAsync_ptsz(uint64_t *p, size_t size, void *stream)
{
	int result = REAL(cuMemAllocAsync_ptsz, p, size, stream);
	return allocated(result, GOT(result, p), size, NULL, stream, CALLER);
}

int cuMemAllocFromPoolAsync(uint64_t *p, size_t size, void *pool, void *stream)
{
	int result = REAL(cuMemAllocFromPoolAsync, p, size, pool, stream);
	return allocated(result, GOT(result, p), size, pool, stream, CALLER);
}

int cuMemAllocFromPoolAsync_ptsz(uint64_t *p, size_t size, void *pool, void *stream)
{
	int result = REAL(cuMemAllocFromPoolAsync_ptsz, p, size, pool, stream);
	return allocated(result, GOT(result, p), size, pool, stream, CALLER);
}

int cuMemFreeAsync(uint64_t p, void *stream)
{
	int told = gm_going(GM_FREE, p, 0, (uint64_t)stream, CALLER);
	return gm_gone(REAL(cuMemFreeAsync, p, stream), told, GM_FREE_FAILED, p, 0, CALLER);
}

int cuMemFreeAsync_ptsz(uint64_t p, void *stream)
{
	int told = gm_going(GM_FREE, p, 0, (uint64_t)stream, CALLER);
	return gm_gone(REAL(cuMemFreeAsync_ptsz, p, stream), told, GM_FREE_FAILED, p, 0, CALLER);
}

static int trimmed(int result, void *pool, void *caller)
{
	GM_QUIETLY;
	if (result == CU_SUCCESS && gm_on())
		sample(pool, gm_device(), caller);
	return result;
}

int cuMemPoolTrimTo(void *pool, size_t keep)
{
	return trimmed(REAL(cuMemPoolTrimTo, pool, keep), pool, CALLER);
}

static int destroyed(int result, void *pool, void *caller)
{
	GM_QUIETLY;
	if (result == CU_SUCCESS && gm_on()) {
		struct gm_record r = {.kind = GM_POOL_GONE, .device = (int16_t)gm_device(), .d = (uint64_t)pool};
		forget(pool);
		gm_tell(&r, caller);
	}
	return result;
}

int cuMemPoolDestroy(void *pool)
{
	return destroyed(REAL(cuMemPoolDestroy, pool), pool, CALLER);
}
