/* A library that allocates for others: another range of code than theirs. */
#include "cuda_api.h"

CUresult plug_alloc(CUdeviceptr *p, size_t size);
CUresult plug_alloc(CUdeviceptr *p, size_t size)
{
	CUresult result = cuMemAlloc_v2(p, size);
	__asm__ volatile(""); /* the call is from here */
	return result;
}
