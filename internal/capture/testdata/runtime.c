/* Obtains memory through the CUDA runtime: linked with the shared one, or with the static one. A constructor and a destructor do, too. */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "cudart.h"

__attribute__((constructor)) static void early(void)
{
	void *p;
	CHECK(cudaMalloc(&p, 1013));
}

__attribute__((destructor)) static void late(void)
{
	void *p;
	cudaMalloc(&p, 1019); /* the driver may be gone */
}

int main(void)
{
	void *p[5];
	size_t pitch;
	for (int i = 0; i < 29; i++) {
		CHECK(cudaMalloc(&p[0], 2003));
		if (i % 3)
			CHECK(cudaFree(p[0]));
	}
	CHECK(cudaMallocAsync(&p[1], 3001, NULL));
	CHECK(cudaFreeAsync(p[1], NULL));
	CHECK(cudaMallocManaged(&p[1], 4003, 1));
	CHECK(cudaMallocPitch(&p[2], &pitch, 1000, 11));
	CHECK(cudaMallocHost(&p[3], 5003));
	CHECK(cudaHostAlloc(&p[4], 6007, 0));
	CHECK(cudaFreeHost(p[4]));
	return 0;
}
