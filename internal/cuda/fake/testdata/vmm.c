/* Physical memory, its mappings and its life. */
#include "start.h"

#include <fcntl.h>
#include <unistd.h>

static CUmemGenericAllocationHandle create(size_t size, CUmemAllocationHandleType type)
{
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp prop = on_device(type);
	OK(cuMemCreate(&h, size, &prop, 0));
	return h;
}

static CUdeviceptr reserve(size_t size)
{
	CUdeviceptr p;
	OK(cuMemAddressReserve(&p, size, 0, 0, 0));
	CHECK(p % (2 * MIB) == 0);
	return p;
}

static void map(CUdeviceptr p, size_t size, CUmemGenericAllocationHandle h)
{
	CUmemAccessDesc rw = access_of(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemMap(p, size, 0, h, 0));
	OK(cuMemSetAccess(p, size, &rw, 1));
}

/* Two handles, interleaved twice in one range: what is written at one address is read at the other. */
static void aliases(void)
{
	CUmemGenericAllocationHandle a = create(2 * MIB, 0), b = create(4 * MIB, 0);
	CUdeviceptr p = reserve(16 * MIB);
	CUmemAccessDesc rw = access_of(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemMap(p, 2 * MIB, 0, a, 0));
	OK(cuMemMap(p + 2 * MIB, 4 * MIB, 0, b, 0));
	OK(cuMemMap(p + 6 * MIB, 2 * MIB, 0, a, 0));
	OK(cuMemSetAccess(p, 8 * MIB, &rw, 1));
	OK(cuMemsetD32_v2(p, 7, 2 * MIB)); /* across all three */
	poke(p + 4, 42);
	CHECK(peek(p + 6 * MIB + 4) == 42 && peek(p + 6 * MIB) == 7 && peek(p + 2 * MIB) == 7);
	OK(cuMemcpyDtoD_v2(p + 2 * MIB, p, 4));
	OK(cuMemUnmap(p, 2 * MIB));
	CHECK(peek(p + 6 * MIB + 4) == 42);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, &rw, 4));
	OK(cuMemUnmap(p + 2 * MIB, 6 * MIB));
	OK(cuMemRelease(a));
	OK(cuMemRelease(b));
	OK(cuMemAddressFree(p, 16 * MIB));
}

/* Memory lives as long as a handle or a mapping. */
static void lifetime(void)
{
	size_t before = free_bytes();
	CUmemGenericAllocationHandle h = create(64 * MIB, 0), again;
	CUdeviceptr p = reserve(64 * MIB);
	CHECK(before - free_bytes() == 64 * MIB);
	map(p, 64 * MIB, h);
	OK(cuMemRelease(h));
	CHECK(before - free_bytes() == 64 * MIB);
	poke(p, 5);
	CHECK(peek(p) == 5);
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + 3 * MIB)));
	CHECK(again == h);
	OK(cuMemUnmap(p, 64 * MIB));
	CHECK(before - free_bytes() == 64 * MIB);
	map(p, 64 * MIB, again);
	CHECK(peek(p) == 5);
	OK(cuMemUnmap(p, 64 * MIB));
	OK(cuMemRelease(again));
	CHECK(before == free_bytes());
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)p));
	OK(cuMemAddressFree(p, 64 * MIB));
}

static void refusals(void)
{
	CUmemGenericAllocationHandle h = create(4 * MIB, 0), bad;
	CUdeviceptr p = reserve(8 * MIB), q;
	CUmemAllocationProp prop = on_device(0);
	CUmemAccessDesc rw = access_of(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&bad, MIB, &prop, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&bad, 0, &prop, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&q, MIB, 0, 0, 0));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(p, MIB, 0, h, 0));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(p, 2 * MIB, 0, h, 0));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(p, 2 * MIB, 2 * MIB, h, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, 4 * MIB, &rw, 1));
	OK(cuMemUnmap(p, 4 * MIB)); /* of nothing */
	OK(cuMemMap(p, 4 * MIB, 0, h, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, &rw, 4)); /* no access yet */
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, 4 * MIB, 0, h, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p, 2 * MIB));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, 2 * MIB, &rw, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, 8 * MIB, &rw, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 8 * MIB));
	OK(cuMemUnmap(p, 8 * MIB));
	OK(cuMemRelease(h));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRelease(h));
	OK(cuMemAddressFree(p, 8 * MIB));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 8 * MIB));
}

static void facts(void)
{
	CUmemAllocationProp prop = on_device(0), read;
	CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	CUmemGenericAllocationHandle h = create(2 * MIB, 0);
	CUdeviceptr p = reserve(2 * MIB), start;
	unsigned long long flags;
	size_t granularity, size;
	OK(cuMemGetAllocationGranularity(&granularity, &prop, 0));
	CHECK(granularity == 2 * MIB);
	OK(cuMemGetAllocationPropertiesFromHandle(&read, h));
	CHECK(read.type == prop.type && read.location.type == prop.location.type && read.location.id == 0);
	OK(cuMemMap(p, 2 * MIB, 0, h, 0));
	OK(cuMemGetAccess(&flags, &here, p));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CUmemAccessDesc rw = access_of(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemSetAccess(p, 2 * MIB, &rw, 1));
	OK(cuMemGetAccess(&flags, &here, p));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemGetAddressRange_v2(&start, &size, p + MIB));
	CHECK(start == p && size == 2 * MIB);
	OK(cuMemUnmap(p, 2 * MIB));
	OK(cuMemRelease(h));
	OK(cuMemAddressFree(p, 2 * MIB));
}

/* A handle sent through a file descriptor is the same memory, which lives until both are gone. */
static void sharing(void)
{
	size_t before = free_bytes();
	CUmemGenericAllocationHandle h = create(2 * MIB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), other;
	CUdeviceptr p = reserve(4 * MIB);
	int fd;
	OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	CHECK(other != h);
	map(p, 2 * MIB, h);
	map(p + 2 * MIB, 2 * MIB, other);
	poke(p, 11);
	CHECK(peek(p + 2 * MIB) == 11);
	OK(cuMemUnmap(p, 2 * MIB));
	OK(cuMemRelease(h));
	CHECK(peek(p + 2 * MIB) == 11 && before - free_bytes() == 2 * MIB);
	OK(cuMemUnmap(p + 2 * MIB, 2 * MIB));
	OK(cuMemRelease(other));
	CHECK(before == free_bytes());
	OK(cuMemAddressFree(p, 4 * MIB));
	fd = open("/dev/null", O_RDONLY);
	GIVES(CUDA_ERROR_UNKNOWN,
	      cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
}

/* Reservations cost nothing, and a hint is taken where it can be. */
static void addresses(void)
{
	CUdeviceptr p, q;
	OK(cuMemAddressReserve(&p, 256 * GIB, GIB, 0, 0));
	CHECK(p % GIB == 0);
	OK(cuMemAddressFree(p, 256 * GIB));
	OK(cuMemAddressReserve(&q, 64 * MIB, 0, p, 0));
	CHECK(p == q);
	OK(cuMemAddressFree(q, 64 * MIB));
}

/* Many small handles need neither a descriptor nor much address space each. */
static void many(void)
{
	enum { N = 3000 };
	static CUmemGenericAllocationHandle h[N];
	CUdeviceptr p = reserve(N * 2 * MIB);
	for (int i = 0; i < N; i++) {
		h[i] = create(2 * MIB, 0);
		map(p + (CUdeviceptr)i * 2 * MIB, 2 * MIB, h[i]);
		OK(cuMemRelease(h[i]));
	}
	for (int i = 0; i < N; i += 100)
		poke(p + (CUdeviceptr)i * 2 * MIB, (unsigned)i);
	for (int i = 0; i < N; i += 100)
		CHECK(peek(p + (CUdeviceptr)i * 2 * MIB) == (unsigned)i);
	OK(cuMemUnmap(p, N * 2 * MIB));
	OK(cuMemAddressFree(p, N * 2 * MIB));
}

int main(void)
{
	start();
	aliases();
	lifetime();
	refusals();
	facts();
	sharing();
	addresses();
	many();
	return 0;
}
