/* The registry of allocations, and the host memory that represents them. */
#include "races.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct table blocks;

/* Contents are real, but a page uses no memory until it is touched. */
static uint64_t pages_map(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? 0 : (uint64_t)(uintptr_t)p;
}

struct block *block_add(enum block_kind kind, uint64_t size, uint64_t address)
{
	struct block *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	b->kind = kind;
	b->ctx = context_current();
	b->device = current_device();
	b->range.key = address ? address : pages_map(size);
	b->range.size = size;
	if (b->range.key && table_insert(&blocks, &b->range))
		return b;
	if (b->range.key && !address)
		munmap((void *)(uintptr_t)b->range.key, size);
	free(b);
	return NULL;
}

void block_remove(struct block *b)
{
	table_remove(&blocks, &b->range);
	races_forget(b->range.key, b->range.size);
	if (b->kind != BLOCK_REGISTERED)
		munmap((void *)(uintptr_t)b->range.key, b->range.size);
	if (b->file)
		close(b->file - 1);
	free(b);
}

/* block_release removes a block and returns its memory. */
static void block_release(struct block *b)
{
	switch (b->kind) {
	case BLOCK_MEMORY:
		memory_give(b->device, b->range.size);
		break;
	case BLOCK_MANAGED:
		count_free(FAKE_MANAGED, b->range.size);
		break;
	case BLOCK_HOST:
	case BLOCK_REGISTERED:
		count_free(FAKE_PINNED_HOST, b->range.size);
		break;
	case BLOCK_POOL:
		pool_block_done(b);
		return;
	case BLOCK_OPENED:
		break;
	}
	block_remove(b);
}

CUresult block_free(uint64_t address, unsigned kinds)
{
	struct block *b = table_at(&blocks, address);
	if (!b || b->freed || !(kinds & 1u << b->kind))
		return CUDA_ERROR_INVALID_VALUE;
	bool host = b->kind == BLOCK_HOST || b->kind == BLOCK_REGISTERED; /* nothing says that their end waits for work */
	if (host)
		races_end(address, b->range.size, entered);
	device_drain(b->device);
	if (!host)
		races_sync_device(b->device);
	if (table_at(&blocks, address) != b || b->freed) /* freed by another thread in between */
		return CUDA_ERROR_INVALID_VALUE;
	block_release(b);
	return CUDA_SUCCESS;
}

void blocks_release(CUcontext ctx)
{
	for (size_t i = blocks.count; i-- > 0;) {
		struct block *b = (struct block *)blocks.items[i];
		if (b->ctx == ctx)
			block_release(b);
	}
}

/* Memory that is not a mapping is accessible to all devices, since copies between any two work. */
bool device_range(int device, uint64_t address, uint64_t size)
{
	struct block *b = table_covering(&blocks, address);
	if (b)
		return size <= b->range.key + b->range.size - address;
	return mapped_range(device, address, size);
}

/* host_range: the driver refuses memory that is partly pinned. Its documentation does not say whether two adjacent pinned pieces may be
 * copied as one; here they may not. */
bool host_range(uint64_t address, uint64_t size)
{
	struct block *b = table_covering(&blocks, address);
	if (b)
		return size <= b->range.key + b->range.size - address;
	size_t next = table_from(&blocks, address);
	return next == blocks.count || blocks.items[next]->key - address >= size;
}

bool device_address(uint64_t address)
{
	return table_covering(&blocks, address) || reservation_covering(address);
}
