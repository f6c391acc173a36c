/* Stream-ordered memory pools. A pool takes its device's memory in steps and keeps what is freed until a synchronisation.
 * Each allocation is memory of its own: a pool's steps exist only in the counts, so pools never fragment. */
#include "driver.h"

#include <stdlib.h>

#define STEP (32 * MIB)

struct CUmemPoolHandle_st {
	CUmemoryPool next;
	int device;
	bool destroyed;
	uint64_t used, used_high;         /* bytes allocated and not freed */
	uint64_t held;                    /* and those whose free the stream has not reached */
	uint64_t reserved, reserved_high; /* bytes of the device */
	uint64_t threshold;
	int reuse[3]; /* policies, which have no effect */
	unsigned blocks;
};

static CUmemoryPool pools;
static CUmemoryPool defaults[FAKE_DEVICES_MAX], currents[FAKE_DEVICES_MAX];

static CUmemoryPool pool_new(int device)
{
	CUmemoryPool p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->device = device;
	p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
	p->next = pools;
	pools = p;
	return p;
}

static CUmemoryPool pool_default(int device)
{
	if (!defaults[device])
		defaults[device] = pool_new(device);
	return defaults[device];
}

static CUmemoryPool pool_current(int device) { return currents[device] ? currents[device] : pool_default(device); }

static bool pool_known(CUmemoryPool pool)
{
	for (CUmemoryPool p = pools; p; p = p->next)
		if (p == pool)
			return !p->destroyed;
	return false;
}

/* pool_shrink releases what exceeds both keep and the memory in use. */
static void pool_shrink(CUmemoryPool p, uint64_t keep)
{
	uint64_t floor = p->held > keep ? p->held : keep;
	if (floor >= p->reserved)
		return;
	uint64_t release = (p->reserved - floor) / STEP * STEP;
	if (!release)
		return;
	device_give(p->device, FAKE_POOL_RESERVED, release, release);
	p->reserved -= release;
}

void pools_sync(int device)
{
	for (CUmemoryPool p = pools; p; p = p->next)
		if (p->device == device)
			pool_shrink(p, p->threshold);
}

void pools_release_all(int device)
{
	for (CUmemoryPool p = pools; p; p = p->next)
		if (p->device == device)
			pool_shrink(p, 0);
}

static CUresult pool_grow(CUmemoryPool p, uint64_t size)
{
	if (p->used + size <= p->reserved)
		return CUDA_SUCCESS;
	uint64_t grow = round_up(p->used + size - p->reserved, STEP);
	CUresult r = device_take(p->device, FAKE_POOL_RESERVED, grow, grow);
	if (r != CUDA_SUCCESS)
		return r;
	p->reserved += grow;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	return CUDA_SUCCESS;
}

/* pool_settle frees a pool that was destroyed before its memory was freed. */
static void pool_settle(CUmemoryPool pool)
{
	if (!pool->destroyed || pool->blocks)
		return;
	pool_shrink(pool, 0);
	for (CUmemoryPool *at = &pools; *at; at = &(*at)->next)
		if (*at == pool) {
			*at = pool->next;
			break;
		}
	free(pool);
}

static void block_freed(struct block *b)
{
	b->freed = true;
	b->pool->used -= b->range.size;
	count_free(FAKE_POOL_USED, b->range.size);
}

void pool_block_done(struct block *b)
{
	CUmemoryPool pool = b->pool;
	if (!b->freed)
		block_freed(b);
	pool->held -= b->range.size;
	pool->blocks--;
	block_remove(b);
	pool_settle(pool);
}

static CUresult pool_alloc(CUdeviceptr *out, uint64_t size, CUmemoryPool p)
{
	CUresult r = pool_grow(p, size);
	if (r == CUDA_ERROR_OUT_OF_MEMORY) {
		device_drain(p->device);
		pools_release_all(p->device);
		r = pool_grow(p, size);
	}
	if (r != CUDA_SUCCESS)
		return r;
	struct block *b = block_add(BLOCK_POOL, size, 0);
	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->device = p->device;
	b->pool = p;
	p->blocks++;
	p->held += size;
	p->used += size;
	if (p->used > p->used_high)
		p->used_high = p->used;
	count_alloc(FAKE_POOL_USED, size);
	*out = b->range.key;
	return CUDA_SUCCESS;
}

static CUresult alloc_async(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
	if (!out || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > fake_capacity())
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUstream s;
	lock();
	CUresult r = stream_find(stream, &s);
	if (r == CUDA_SUCCESS && !pool)
		pool = pool_current(s->ctx->device);
	if (r == CUDA_SUCCESS)
		r = pool_known(pool) ? pool_alloc(out, size, pool) : CUDA_ERROR_INVALID_VALUE;
	unlock();
	return r;
}

CUresult cuMemAllocAsync(CUdeviceptr *p, size_t size, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	return alloc_async(p, size, NULL, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *p, size_t size, CUstream stream)
{
	return cuMemAllocAsync(p, size, stream ? stream : CU_STREAM_PER_THREAD);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t size, CUmemoryPool pool, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	return pool ? alloc_async(p, size, pool, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *p, size_t size, CUmemoryPool pool, CUstream stream)
{
	return cuMemAllocFromPoolAsync(p, size, pool, stream ? stream : CU_STREAM_PER_THREAD);
}

/* free_async also frees memory of cuMemAlloc, for which it waits. */
static CUresult free_async(CUdeviceptr p, CUstream stream)
{
	CUstream s;
	CUresult r = stream_find(stream, &s);
	if (r != CUDA_SUCCESS)
		return r;
	struct block *b = table_at(&blocks, p);
	if (!b || b->kind != BLOCK_POOL || b->freed)
		return block_free(p, 1u << BLOCK_MEMORY);
	struct op op = {.kind = OP_FREE, .block = b};
	block_freed(b);
	return stream_idle(s) ? queue_op_and_wait(s, &op) : queue_op(s, &op);
}

CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	CUresult r = free_async(p, stream);
	unlock();
	return r;
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr p, CUstream stream)
{
	return cuMemFreeAsync(p, stream ? stream : CU_STREAM_PER_THREAD);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	ENTER(NEED_INIT);
	if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!device_valid(props->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	lock();
	CUmemoryPool p = pool_new(props->location.id);
	unlock();
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pool = p;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	ENTER(NEED_INIT);
	lock();
	bool ok = pool_known(pool) && pool != defaults[pool->device];
	if (ok) {
		if (currents[pool->device] == pool)
			currents[pool->device] = NULL;
		pool->destroyed = true;
		pool_settle(pool);
	}
	unlock();
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	ENTER(NEED_INIT);
	lock();
	bool ok = pool_known(pool);
	if (ok)
		pool_shrink(pool, keep);
	unlock();
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A high-water mark can only be set to 0, which resets it to the current value. */
static CUresult pool_set(CUmemoryPool p, CUmemPool_attribute attribute, const void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		p->reuse[attribute - 1] = *(const int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		p->threshold = *(const uint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		p->reserved_high = p->reserved;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		p->used_high = p->used;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return *(const uint64_t *)value ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ENTER(NEED_INIT);
	lock();
	CUresult r = value && pool_known(pool) ? pool_set(pool, attribute, value) : CUDA_ERROR_INVALID_VALUE;
	unlock();
	return r;
}

static CUresult pool_get(CUmemoryPool p, CUmemPool_attribute attribute, void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = p->reuse[attribute - 1];
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(uint64_t *)value = p->threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*(uint64_t *)value = p->reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(uint64_t *)value = p->reserved_high;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(uint64_t *)value = p->used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(uint64_t *)value = p->used_high;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ENTER(NEED_INIT);
	lock();
	CUresult r = value && pool_known(pool) ? pool_get(pool, attribute, value) : CUDA_ERROR_INVALID_VALUE;
	unlock();
	return r;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t n)
{
	ENTER(NEED_INIT);
	lock();
	bool ok = pool_known(pool) && access && n;
	unlock();
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult device_pool(CUmemoryPool *out, CUdevice device, CUmemoryPool (*which)(int))
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	lock();
	*out = which(device);
	unlock();
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	ENTER(NEED_INIT);
	return device_pool(pool, device, pool_default);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	ENTER(NEED_INIT);
	return device_pool(pool, device, pool_current);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	ENTER(NEED_INIT);
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	lock();
	bool ok = pool_known(pool) && pool->device == device;
	if (ok)
		currents[device] = pool;
	unlock();
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
