/* The runtime, linked as a shared library and as an archive. */
#include "check.h"
#include "cuda_types.h"
#include "cudart.h"

typedef CUresult create(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);

static void memory(void)
{
	size_t before, after, total, pitch;
	unsigned in = 5, out = 0;
	void *p, *q, *managed;
	OK(cudaFree(NULL)); /* makes the context */
	OK(cudaMemGetInfo(&before, &total));
	OK(cudaMalloc(&p, 4 * MIB));
	OK(cudaMemGetInfo(&after, &total));
	CHECK(before - after == 4 * MIB);
	OK(cudaMallocPitch(&q, &pitch, 100, 10));
	OK(cudaMallocManaged(&managed, MIB, 1));
	OK(cudaMemset(p, 0, 4 * MIB));
	OK(cudaMemcpy(p, &in, 4, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(q, p, 4, cudaMemcpyDeviceToDevice));
	OK(cudaMemcpy(&out, q, 4, cudaMemcpyDeviceToHost));
	CHECK(out == 5);
	OK(cudaFree(managed));
	OK(cudaFree(q));
	OK(cudaFree(p));
	OK(cudaMalloc(&p, 0));
	CHECK(p == NULL);
	GIVES(cudaErrorMemoryAllocation, cudaMalloc(&p, 4096 * GIB));
	GIVES(cudaErrorMemoryAllocation, cudaGetLastError());
	GIVES(cudaSuccess, cudaGetLastError());
	CHECK(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
}

static void streams(void)
{
	cudaStream_t stream;
	cudaMemPool_t pool;
	unsigned *pinned;
	void *p, *q, *host;
	OK(cudaStreamCreate(&stream));
	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	OK(cudaMallocAsync(&p, MIB, stream));
	OK(cudaMallocFromPoolAsync(&q, MIB, pool, stream));
	OK(cudaHostAlloc((void **)&pinned, 4096, 0));
	OK(cudaMallocHost(&host, 4096));
	*pinned = 99;
	OK(cudaMemsetAsync(p, 0, MIB, stream));
	OK(cudaMemcpyAsync(p, pinned, 4, cudaMemcpyHostToDevice, stream));
	OK(cudaMemcpyAsync(host, p, 4, cudaMemcpyDefault, stream));
	OK(cudaStreamSynchronize(stream));
	CHECK(*(unsigned *)host == 99);
	OK(cudaFreeAsync(q, stream));
	OK(cudaFreeAsync(p, stream));
	OK(cudaFreeHost(host));
	OK(cudaFreeHost(pinned));
	OK(cudaStreamDestroy(stream));
	void *pages = aligned_alloc(4096, 4096);
	OK(cudaHostRegister(pages, 4096, 0));
	OK(cudaHostUnregister(pages));
	free(pages);
}

static void entry_points(void)
{
	enum cudaDriverEntryPointQueryResult status;
	CUmemAllocationProp prop;
	CUmemGenericAllocationHandle h;
	create *p;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	OK(cudaGetDriverEntryPointByVersion("cuMemCreate", (void **)&p, 12080, cudaEnableDefault, &status));
	CHECK(p && status == cudaDriverEntryPointSuccess);
	OK(p(&h, 2 * MIB, &prop, 0));
	OK(cudaGetDriverEntryPoint("cuMemRelease", (void **)&p, cudaEnableDefault, &status));
	CHECK(p);
}

int main(void)
{
	int device, count, version;
	OK(cudaRuntimeGetVersion(&version));
	CHECK(version == 13000);
	OK(cudaGetDeviceCount(&count));
	CHECK(count >= 1);
	OK(cudaGetDevice(&device));
	CHECK(device == 0);
	memory();
	streams();
	entry_points();
	GIVES(cudaErrorInvalidDevice, cudaSetDevice(count));
	OK(cudaSetDevice(0));
	OK(cudaDeviceSynchronize());
	OK(cudaDeviceReset());
	memory();
	return 0;
}
