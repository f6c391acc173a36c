/* Device memory, arrays and pinned memory. */
#include "tell.h"

int cuMemAlloc_v2(uint64_t *p, size_t size)
{
	int result = REAL(cuMemAlloc_v2, p, size);
	return CAME(result, GM_ALLOC, GOT(result, p), size);
}

int cuMemAllocPitch_v2(uint64_t *p, size_t *pitch, size_t width, size_t height, unsigned element)
{
	int result = REAL(cuMemAllocPitch_v2, p, pitch, width, height, element);
	return CAME(result, GM_ALLOC, GOT(result, p), (result == CU_SUCCESS ? *pitch : width) * height);
}

int cuMemAllocManaged(uint64_t *p, size_t size, unsigned flags)
{
	int result = REAL(cuMemAllocManaged, p, size, flags);
	return CAME(result, GM_MANAGED, GOT(result, p), size);
}

int cuMemFree_v2(uint64_t p)
{
	int told = gm_going(GM_FREE, p, 0, 0, CALLER);
	return gm_gone(REAL(cuMemFree_v2, p), told, GM_FREE_FAILED, p, 0, CALLER);
}

int cuMemAllocHost_v2(void **p, size_t size)
{
	int result = REAL(cuMemAllocHost_v2, p, size);
	return CAME(result, GM_HOST_ALLOC, GOT(result, p), size);
}

int cuMemHostAlloc(void **p, size_t size, unsigned flags)
{
	int result = REAL(cuMemHostAlloc, p, size, flags);
	return CAME(result, GM_HOST_ALLOC, GOT(result, p), size);
}

int cuMemFreeHost(void *p)
{
	int told = gm_going(GM_HOST_FREE, (uint64_t)p, 0, 0, CALLER);
	return gm_gone(REAL(cuMemFreeHost, p), told, GM_HOST_FREE_FAILED, (uint64_t)p, 0, CALLER);
}

int cuMemHostRegister_v2(void *p, size_t size, unsigned flags)
{
	int result = REAL(cuMemHostRegister_v2, p, size, flags);
	return CAME(result, GM_HOST_ALLOC, (uint64_t)p, size);
}

int cuMemHostUnregister(void *p)
{
	int told = gm_going(GM_HOST_FREE, (uint64_t)p, 0, 0, CALLER);
	return gm_gone(REAL(cuMemHostUnregister, p), told, GM_HOST_FREE_FAILED, (uint64_t)p, 0, CALLER);
}

/* element returns the bytes of a CUarray_format. */
static size_t element(int format)
{
	switch (format) {
	case 0x01: /* UNSIGNED_INT8 */
	case 0x08: /* SIGNED_INT8 */
		return 1;
	case 0x03: /* UNSIGNED_INT32 */
	case 0x0a: /* SIGNED_INT32 */
	case 0x20: /* FLOAT */
		return 4;
	default: /* 16 bits; packed formats, which deep learning does not use, are counted as such */
		return 2;
	}
}

static size_t or_one(size_t n)
{
	return n ? n : 1;
}

static size_t bytes_3d(const struct cu_array_3d *d)
{
	return d->width * or_one(d->height) * or_one(d->depth) * d->channels * element(d->format);
}

static size_t bytes_levels(struct cu_array_3d level, unsigned levels)
{
	size_t size = 0;
	for (unsigned i = 0; i < levels; i++) {
		size += bytes_3d(&level);
		level.width = or_one(level.width / 2);
		level.height /= 2;
		level.depth /= 2;
	}
	return size;
}

int cuArrayCreate_v2(void **array, const struct cu_array *d)
{
	int result = REAL(cuArrayCreate_v2, array, d);
	return CAME(result, GM_ARRAY, GOT(result, array), d ? d->width * or_one(d->height) * d->channels * element(d->format) : 0);
}

int cuArray3DCreate_v2(void **array, const struct cu_array_3d *d)
{
	int result = REAL(cuArray3DCreate_v2, array, d);
	return CAME(result, GM_ARRAY, GOT(result, array), d ? bytes_3d(d) : 0);
}

int cuArrayDestroy(void *array)
{
	int told = gm_going(GM_FREE, (uint64_t)array, 0, 0, CALLER);
	return gm_gone(REAL(cuArrayDestroy, array), told, GM_FREE_FAILED, (uint64_t)array, 0, CALLER);
}

int cuMipmappedArrayCreate(void **array, const struct cu_array_3d *d, unsigned levels)
{
	int result = REAL(cuMipmappedArrayCreate, array, d, levels);
	return CAME(result, GM_ARRAY, GOT(result, array), d && levels < 64 ? bytes_levels(*d, levels) : 0);
}

int cuMipmappedArrayDestroy(void *array)
{
	int told = gm_going(GM_FREE, (uint64_t)array, 0, 0, CALLER);
	return gm_gone(REAL(cuMipmappedArrayDestroy, array), told, GM_FREE_FAILED, (uint64_t)array, 0, CALLER);
}
