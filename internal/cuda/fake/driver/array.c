/* Arrays have a size and no contents: nothing here reads or writes one. */
#include "driver.h"

#include <stdlib.h>

struct CUarray_st {
	struct CUarray_st *next;
	CUcontext ctx;
	uint64_t size;
};

static struct CUarray_st *arrays;

static unsigned format_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	}
	return 0;
}

/* level_bytes returns the size of one level of detail; a height or a depth of 0 is a dimension that is not there. */
static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned level)
{
	uint64_t size = (uint64_t)format_bytes(d->Format) * d->NumChannels;
	const size_t extents[] = {d->Width, d->Height, d->Depth};
	for (int i = 0; i < 3; i++) {
		uint64_t extent = extents[i] >> level;
		if (__builtin_mul_overflow(size, extent ? extent : 1, &size))
			return UINT64_MAX / 64;
	}
	return size;
}

static CUresult array_create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	if (!out || !d->Width || !format_bytes(d->Format) ||
	    (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	CUarray array = calloc(1, sizeof *array);
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned level = 0; level < levels; level++)
		array->size += level_bytes(d, level);
	array->ctx = context_current();
	lock();
	CUresult r = memory_take(array->ctx->device, array->size);
	if (r == CUDA_SUCCESS) {
		array->next = arrays;
		arrays = array;
		*out = array;
	}
	unlock();
	if (r != CUDA_SUCCESS)
		free(array);
	return r;
}

static void array_unlink(CUarray *at)
{
	CUarray array = *at;
	*at = array->next;
	memory_give(array->ctx->device, array->size);
	free(array);
}

static CUresult array_destroy(CUarray array)
{
	CUresult r = CUDA_ERROR_INVALID_HANDLE;
	lock();
	for (CUarray *at = &arrays; *at; at = &(*at)->next)
		if (*at == array) {
			array_unlink(at);
			r = CUDA_SUCCESS;
			break;
		}
	unlock();
	return r;
}

void arrays_release(CUcontext ctx)
{
	for (CUarray *at = &arrays; *at;) {
		if ((*at)->ctx == ctx)
			array_unlink(at);
		else
			at = &(*at)->next;
	}
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
	ENTER(NEED_CONTEXT);
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR whole = {d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
	return array_create(array, &whole, 1);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	ENTER(NEED_CONTEXT);
	return d ? array_create(array, d, 1) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayDestroy(CUarray array)
{
	ENTER(NEED_CONTEXT);
	return array_destroy(array);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	ENTER(NEED_CONTEXT);
	if (!d || levels == 0 || levels > 32)
		return CUDA_ERROR_INVALID_VALUE;
	return array_create((CUarray *)array, d, levels);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	ENTER(NEED_CONTEXT);
	return array_destroy((CUarray)array);
}
