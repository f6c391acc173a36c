/* Another library that is preloaded, and stands between a program and the driver as the preload library does. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "cuda_api.h"

typedef CUresult alloc_fn(CUdeviceptr *, size_t);

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t size)
{
	return ((alloc_fn *)dlsym(RTLD_NEXT, "cuMemAlloc_v2"))(p, size);
}

CUresult tool_alloc(CUdeviceptr *, size_t);
CUresult tool_alloc(CUdeviceptr *p, size_t size)
{
	return ((alloc_fn *)dlsym(RTLD_NEXT, "cuMemAlloc_v2"))(p, size);
}
