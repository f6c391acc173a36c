/* Stream-ordered pools: what they reserve, what they keep, and what outlives what. */
#include "start.h"

#include <pthread.h>

static uint64_t get(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	uint64_t value;
	OK(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static uint64_t reserved(CUmemoryPool pool) { return get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }
static uint64_t used(CUmemoryPool pool) { return get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }

static void steps(CUstream stream)
{
	CUmemoryPool pool;
	CUdeviceptr p, q;
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	size_t before = free_bytes();
	OK(cuMemAllocAsync(&p, MIB, stream));
	CHECK(reserved(pool) == 32 * MIB && used(pool) == MIB && before - free_bytes() == 32 * MIB);
	OK(cuMemAllocAsync_ptsz(&q, 40 * MIB, stream));
	CHECK(reserved(pool) >= 64 * MIB && reserved(pool) % (32 * MIB) == 0 && used(pool) == 41 * MIB);
	OK(cuMemsetD8Async(q, 9, 40 * MIB, stream));
	OK(cuMemFreeAsync(p, stream));
	OK(cuMemFreeAsync_ptsz(q, stream));
	CHECK(used(pool) == 0 && reserved(pool) >= 64 * MIB);
	OK(cuStreamSynchronize(stream));
	CHECK(reserved(pool) == 0 && free_bytes() == before);
	CHECK(get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 41 * MIB);
	CHECK(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 64 * MIB);
}

static void threshold(CUstream stream)
{
	CUmemPoolProps props;
	memset(&props, 0, sizeof props);
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	CUmemoryPool pool, current;
	CUdeviceptr p;
	uint64_t keep = UINT64_MAX;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	OK(cuMemAllocFromPoolAsync(&p, 100 * MIB, pool, stream));
	OK(cuMemFreeAsync(p, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(reserved(pool) == 128 * MIB);
	OK(cuMemPoolTrimTo(pool, 0));
	CHECK(reserved(pool) == 0);
	OK(cuDeviceSetMemPool(0, pool));
	OK(cuDeviceGetMemPool(&current, 0));
	CHECK(current == pool);
	OK(cuMemAllocAsync(&p, MIB, stream));
	CHECK(used(pool) == MIB);
	OK(cuMemFree_v2(p)); /* a pool's memory may be freed so, too */
	OK(cuMemPoolDestroy(pool));
	OK(cuDeviceGetMemPool(&current, 0));
	CHECK(current != pool);
}

static void wait_for(void *gate)
{
	pthread_mutex_lock(gate);
	pthread_mutex_unlock(gate);
}

/* Memory that is freed behind work in a stream can still be used by that work. */
static void order(CUstream stream)
{
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	CUdeviceptr p;
	unsigned *out;
	OK(cuMemHostAlloc((void **)&out, 4096, 0));
	OK(cuMemAllocAsync(&p, MIB, stream));
	pthread_mutex_lock(&gate);
	OK(cuLaunchHostFunc(stream, wait_for, &gate));
	OK(cuMemsetD32Async(p, 31, 1, stream));
	OK(cuMemcpyDtoHAsync_v2(out, p, 4, stream));
	OK(cuMemFreeAsync(p, stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, stream));
	pthread_mutex_unlock(&gate);
	OK(cuStreamSynchronize(stream));
	CHECK(*out == 31);
	OK(cuMemFreeHost(out));
}

int main(void)
{
	CUstream stream;
	start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	steps(stream);
	threshold(stream);
	order(stream);
	OK(cuStreamDestroy_v2(stream));
	return 0;
}
