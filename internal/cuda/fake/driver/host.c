/* Pinned host memory. */
#include "driver.h"

static CUresult host_alloc(void **p, size_t size, unsigned flags)
{
	if (!p || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	struct block *b = block_add(BLOCK_HOST, size, 0);
	if (b) {
		b->flags = flags;
		count_alloc(FAKE_PINNED_HOST, size);
		*p = (void *)(uintptr_t)b->range.key;
	}
	unlock();
	return b ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocHost_v2(void **p, size_t size)
{
	ENTER(NEED_CONTEXT);
	return host_alloc(p, size, 0);
}

CUresult cuMemHostAlloc(void **p, size_t size, unsigned flags)
{
	ENTER(NEED_CONTEXT);
	if (flags & ~7u)
		return CUDA_ERROR_INVALID_VALUE;
	return host_alloc(p, size, flags);
}

CUresult cuMemFreeHost(void *p)
{
	ENTER(NEED_CONTEXT);
	if (!p)
		return CUDA_SUCCESS;
	lock();
	CUresult r = block_free((uintptr_t)p, 1u << BLOCK_HOST);
	unlock();
	return r;
}

/* overlaps returns whether the driver knows any byte of a range. */
static bool overlaps(uint64_t address, uint64_t size)
{
	size_t i = table_from(&blocks, address);
	return table_covering(&blocks, address) || (i < blocks.count && blocks.items[i]->key < address + size);
}

CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned flags)
{
	ENTER(NEED_CONTEXT);
	uint64_t address = (uintptr_t)p, end;
	if (!p || size == 0 || __builtin_add_overflow(address, size, &end))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	lock();
	if (!overlaps(address, size)) {
		struct block *b = block_add(BLOCK_REGISTERED, size, address);
		r = b ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		if (b) {
			b->flags = flags;
			count_alloc(FAKE_PINNED_HOST, size);
		}
	}
	unlock();
	return r;
}

CUresult cuMemHostUnregister(void *p)
{
	ENTER(NEED_CONTEXT);
	lock();
	CUresult r = block_free((uintptr_t)p, 1u << BLOCK_REGISTERED);
	unlock();
	return r == CUDA_SUCCESS ? r : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static struct block *host_block(void *p)
{
	struct block *b = table_covering(&blocks, (uintptr_t)p);
	return b && (b->kind == BLOCK_HOST || b->kind == BLOCK_REGISTERED) ? b : NULL;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *p, unsigned flags)
{
	ENTER(NEED_CONTEXT);
	if (!device || flags)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	bool ok = host_block(p) != NULL;
	unlock();
	if (!ok)
		return CUDA_ERROR_INVALID_VALUE;
	*device = (uintptr_t)p;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *p)
{
	ENTER(NEED_CONTEXT);
	lock();
	struct block *b = host_block(p);
	if (b && flags)
		*flags = b->flags;
	unlock();
	return b && flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
