/* cuMemAlloc and its kin, host memory, arrays, and what the driver says of an address. */
#include "start.h"

static void device_memory(CUcontext ctx)
{
	size_t before = free_bytes(), pitch, size;
	CUdeviceptr p, q, start;
	OK(cuMemAlloc_v2(&p, 8 * MIB));
	CHECK(before - free_bytes() == 8 * MIB);
	OK(cuMemGetAddressRange_v2(&start, &size, p + 5 * MIB));
	CHECK(start == p && size == 8 * MIB);
	poke(p + 8 * MIB - 4, 77);
	OK(cuMemAllocPitch_v2(&q, &pitch, 1000, 3000, 4));
	CHECK(pitch == 1024);
	OK(cuMemcpyDtoD_v2(q, p + 8 * MIB - 4, 4));
	CHECK(peek(q) == 77);
	OK(cuMemcpy(q + 4, q, 4));
	CHECK(peek(q + 4) == 77);

	CUcontext owner;
	unsigned type;
	int device;
	OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p + 1));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 1));
	OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p + 1));
	CHECK(owner == ctx && type == CU_MEMORYTYPE_DEVICE && device == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 16));

	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p + 4096));
	OK(cuMemFree_v2(q));
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
	CHECK(before == free_bytes());
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&p, 0));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&p, 1024 * GIB));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&p, free_bytes() + 2 * MIB));
}

/* Small allocations share pages of 2 MiB. */
static void small(void)
{
	enum { N = 5000 };
	static CUdeviceptr p[N];
	size_t before = free_bytes();
	for (int i = 0; i < N; i++) {
		OK(cuMemAlloc_v2(&p[i], 1000));
		if (i == 0)
			CHECK(before - free_bytes() == 2 * MIB);
	}
	CHECK(before - free_bytes() == 6 * MIB);
	for (int i = 0; i < N; i++)
		OK(cuMemFree_v2(p[i]));
	CHECK(before == free_bytes());
}

static void managed(void)
{
	CUdeviceptr p;
	unsigned is;
	OK(cuMemAllocManaged(&p, 2 * MIB, CU_MEM_ATTACH_GLOBAL));
	OK(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	CHECK(is == 1);
	*(unsigned *)(uintptr_t)p = 3;
	CHECK(peek(p) == 3);
	OK(cuMemFree_v2(p));
}

static void host(void)
{
	CUdeviceptr d;
	unsigned *p, *q, type;
	OK(cuMemHostAlloc((void **)&p, MIB, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemAllocHost_v2((void **)&q, MIB));
	OK(cuMemHostGetDevicePointer_v2(&d, p, 0));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
	CHECK(type == CU_MEMORYTYPE_HOST);
	*p = 12;
	CHECK(peek(d) == 12);
	OK(cuMemFreeHost(p));
	OK(cuMemFreeHost(q));
	OK(cuMemFreeHost(NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(p));

	void *pages = aligned_alloc(4096, MIB);
	memset(pages, 1, MIB);
	GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(pages));
	OK(cuMemHostRegister_v2(pages, MIB, 0));
	GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(pages, MIB, 0));
	OK(cuMemHostUnregister(pages));
	free(pages);
}

/* A copy stays within what was registered at once, or out of all of it. */
static void registered(void)
{
	CUdeviceptr d;
	char *pages = aligned_alloc(4096, MIB), *middle = pages + MIB / 2;
	memset(pages, 1, MIB);
	OK(cuMemAlloc_v2(&d, MIB));
	OK(cuMemcpyHtoD_v2(d, pages, MIB));
	OK(cuMemHostRegister_v2(middle, MIB / 2, 0));
	OK(cuMemcpyHtoD_v2(d, pages, MIB / 2));
	OK(cuMemcpyHtoD_v2(d, middle, MIB / 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(d, pages, MIB / 2 + 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoHAsync_v2(pages, d, MIB, 0));
	OK(cuMemHostRegister_v2(pages, MIB / 2, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync_v2(d, middle - 4, 8, 0));
	OK(cuMemcpyDtoHAsync_v2(middle - 4, d, 4, 0));
	OK(cuMemHostUnregister(pages));
	OK(cuMemHostUnregister(middle));
	OK(cuMemFree_v2(d));
	free(pages);
}

static void arrays(void)
{
	size_t before = free_bytes();
	CUDA_ARRAY_DESCRIPTOR flat = {1024, 1024, CU_AD_FORMAT_FLOAT, 4};
	CUDA_ARRAY3D_DESCRIPTOR cube = {128, 128, 128, CU_AD_FORMAT_FLOAT, 1, 0};
	CUarray a, b;
	CUmipmappedArray m;
	OK(cuArrayCreate_v2(&a, &flat));
	CHECK(before - free_bytes() >= 16 * MIB);
	OK(cuArray3DCreate_v2(&b, &cube));
	CHECK(before - free_bytes() >= 24 * MIB);
	OK(cuMipmappedArrayCreate(&m, &cube, 4));
	OK(cuMipmappedArrayDestroy(m));
	OK(cuArrayDestroy(b));
	OK(cuArrayDestroy(a));
	CHECK(before == free_bytes());
}

int main(void)
{
	CUcontext ctx = start();
	device_memory(ctx);
	small();
	managed();
	host();
	registered();
	arrays();
	return 0;
}
