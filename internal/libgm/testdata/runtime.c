/* A program of the CUDA runtime that knows nothing of gm: it runs with the preload library and without. */
#include "check.h"

#include "cudart.h"

static void reuse(void)
{
	char *p, *q;
	unsigned word = 0;
	size_t before, after, total;
	OK(cudaMalloc((void **)&p, 40 * MIB));
	OK(cudaMemset(p, 5, 40 * MIB));
	OK(cudaMemcpy(&word, p + 40 * MIB - 4, 4, cudaMemcpyDeviceToHost));
	CHECK(word == 0x05050505);
	OK(cudaFree(p));
	OK(cudaMemGetInfo(&before, &total));
	OK(cudaMalloc((void **)&q, 40 * MIB));
	OK(cudaMemGetInfo(&after, &total));
	OK(cudaFree(q));
	printf("%s\n", before == after ? "reused" : "fresh");
}

static void oddities(void)
{
	void *p = &p;
	OK(cudaFree(NULL));
	OK(cudaMalloc(&p, 0));
	OK(cudaFree(p));
	CHECK(cudaMalloc(NULL, 100) != 0);
	CHECK(cudaMalloc(&p, (size_t)1 << 45) == cudaErrorMemoryAllocation);
	CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
	CHECK(cudaFree((void *)(uintptr_t)0x1234) != 0);
	cudaGetLastError();
	CUdeviceptr foreign;
	OK(cuMemAlloc_v2(&foreign, MIB));
	OK(cudaFree((void *)(uintptr_t)foreign));
	OK(cudaMalloc(&p, MIB));
	OK(cudaFreeAsync(p, NULL));
	OK(cudaMallocAsync(&p, MIB, NULL));
	OK(cudaFreeAsync(p, NULL));
}

int main(void)
{
	int device = 7;
	reuse();
	oddities();
	OK(cudaSetDevice(1));
	void *p;
	OK(cudaMalloc(&p, MIB));
	OK(cudaSetDevice(0));
	OK(cudaFree(p));
	OK(cudaGetDevice(&device));
	CHECK(device == 0);
	OK(cudaMalloc(&p, MIB));
	OK(cudaDeviceReset());
	cudaFree(p);
	cudaGetLastError();
	OK(cudaMalloc(&p, MIB));
	OK(cudaMemset(p, 1, MIB));
	OK(cudaFree(p));
	reuse();
	OK(cudaSetDevice(1));
	reuse();
	return 0;
}
