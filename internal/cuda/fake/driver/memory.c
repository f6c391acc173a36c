/* cuMemAlloc and related functions, and queries about an address. */
#include "driver.h"

#include <string.h>
#include <unistd.h>

#define KIND(k) (1u << (k))

static CUresult memory_alloc(CUdeviceptr *p, uint64_t size)
{
	int device = current_device();
	CUresult r = memory_take(device, size);
	if (r != CUDA_SUCCESS) {
		pools_release_all(device);
		r = memory_take(device, size);
	}
	if (r != CUDA_SUCCESS)
		return r;
	struct block *b = block_add(BLOCK_MEMORY, size, 0);
	if (!b) {
		memory_give(device, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*p = b->range.key;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t size)
{
	ENTER(NEED_CONTEXT);
	if (!p || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > fake_capacity())
		return CUDA_ERROR_OUT_OF_MEMORY;
	lock();
	CUresult r = memory_alloc(p, size);
	unlock();
	return r;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height, unsigned element)
{
	ENTER(NEED_CONTEXT);
	if (!p || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t row, size;
	if (__builtin_add_overflow(width, 511, &row) || __builtin_mul_overflow(row / 512 * 512, height, &size) ||
	    size > fake_capacity())
		return CUDA_ERROR_OUT_OF_MEMORY;
	lock();
	CUresult r = memory_alloc(p, size);
	unlock();
	if (r == CUDA_SUCCESS)
		*pitch = row / 512 * 512;
	return r;
}

/* Managed memory is counted separately: it takes a device's memory only when the device touches it. */
CUresult cuMemAllocManaged(CUdeviceptr *p, size_t size, unsigned flags)
{
	ENTER(NEED_CONTEXT);
	if (!p || size == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	struct block *b = block_add(BLOCK_MANAGED, size, 0);
	if (b) {
		count_alloc(FAKE_MANAGED, size);
		*p = b->range.key;
	}
	unlock();
	return b ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A free waits for the device, so pools release memory as well. */
CUresult cuMemFree_v2(CUdeviceptr p)
{
	ENTER(NEED_CONTEXT);
	if (!p)
		return CUDA_SUCCESS;
	lock();
	CUresult r = block_free(p, KIND(BLOCK_MEMORY) | KIND(BLOCK_MANAGED) | KIND(BLOCK_POOL));
	pools_sync(current_device());
	unlock();
	return r;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	ENTER(NEED_CONTEXT);
	if (!free || !total)
		return CUDA_ERROR_INVALID_VALUE;
	*free = device_free_bytes(current_device());
	*total = fake_capacity();
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
	ENTER(NEED_CONTEXT);
	lock();
	struct entry *e = table_covering(&blocks, p);
	if (!e)
		e = mapping_covering(p);
	if (e && base)
		*base = e->key;
	if (e && size)
		*size = e->size;
	unlock();
	return e ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* The answers of cuPointerGetAttribute. */
struct pointer_facts {
	CUcontext ctx;
	unsigned memory_type;
	int device;
	bool managed, mapped;
	uint64_t start, size;
	CUmemoryPool pool;
};

static bool pointer_facts(uint64_t p, struct pointer_facts *f)
{
	struct block *b = table_covering(&blocks, p);
	if (!b && !mapping_covering(p))
		return false;
	struct entry *e = b ? &b->range : reservation_covering(p);
	bool host = b && (b->kind == BLOCK_HOST || b->kind == BLOCK_REGISTERED);
	*f = (struct pointer_facts){
		.ctx = b && b->kind != BLOCK_POOL ? b->ctx : NULL,
		.memory_type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.device = b ? b->device : mapped_device(p),
		.managed = b && b->kind == BLOCK_MANAGED,
		.mapped = true,
		.start = e->key,
		.size = e->size,
		.pool = b ? b->pool : NULL,
	};
	return true;
}

static CUresult pointer_attribute(void *value, CUpointer_attribute attribute, uint64_t p, const struct pointer_facts *f)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)value = f->ctx;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)value = f->memory_type;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)value = p;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)value = f->memory_type == CU_MEMORYTYPE_HOST || f->managed ? (void *)(uintptr_t)p : NULL;
		return *(void **)value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)value = f->managed;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)value = f->device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)value = f->start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)value = f->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(int *)value = f->mapped;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)value = f->pool;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr p)
{
	ENTER(NEED_INIT);
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	struct pointer_facts facts;
	lock();
	CUresult r = pointer_facts(p, &facts) ? pointer_attribute(value, attribute, p, &facts) : CUDA_ERROR_INVALID_VALUE;
	unlock();
	return r;
}

/* As documented, an address that the driver does not know yields zeros and no error. */
CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *attributes, void **values, CUdeviceptr p)
{
	ENTER(NEED_INIT);
	if (!n || !attributes || !values)
		return CUDA_ERROR_INVALID_VALUE;
	struct pointer_facts facts = {.device = -2};
	lock();
	pointer_facts(p, &facts);
	unlock();
	for (unsigned i = 0; i < n; i++)
		pointer_attribute(values[i], attributes[i], facts.size ? p : 0, &facts);
	return CUDA_SUCCESS;
}
