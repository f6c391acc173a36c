/* Contexts: what needs one, what one costs, and what goes with it. */
#include "start.h"

static void stacks(CUcontext primary)
{
	CUcontext own, top;
	CUdeviceptr p;
	unsigned flags;
	int active;
	OK(cuCtxCreate_v2(&own, 0, 1));
	OK(cuCtxGetCurrent(&top));
	CHECK(top == own);
	size_t before = free_bytes();
	OK(cuMemAlloc_v2(&p, 32 * MIB));
	CHECK(before - free_bytes() == 32 * MIB);
	OK(cuCtxPopCurrent_v2(&top));
	CHECK(top == own);
	OK(cuCtxGetCurrent(&top));
	CHECK(top == primary);
	OK(cuCtxPushCurrent_v2(own));
	OK(cuCtxDestroy_v2(own)); /* its memory goes with it */
	OK(cuCtxGetCurrent(&top));
	CHECK(top == primary);
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
	OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	CHECK(active == 1);
}

static void modules(void)
{
	static const char image[] = "code";
	CUmodule m, of_library;
	CUlibrary library;
	CUfunction f, again;
	CUkernel kernel;
	size_t before = free_bytes();
	OK(cuModuleLoadData(&m, image));
	CHECK(before - free_bytes() == 2 * MIB);
	OK(cuModuleGetFunction(&f, m, "first"));
	OK(cuModuleGetFunction(&again, m, "second"));
	CHECK(before - free_bytes() == 3 * MIB && f != again);
	OK(cuModuleGetFunction(&again, m, "first"));
	CHECK(f == again);
	OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, 0, NULL, NULL));
	OK(cuModuleUnload(m));
	CHECK(before == free_bytes());
	OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetModule(&of_library, library));
	OK(cuLibraryGetKernel(&kernel, library, "first"));
	OK(cuKernelGetFunction(&f, kernel));
	CHECK(before - free_bytes() == 3 * MIB);
	OK(cuLibraryUnload(library));
	CHECK(before == free_bytes());
}

int main(void)
{
	CUcontext ctx, current;
	CUdeviceptr p;
	size_t total;
	int active, version, count;
	unsigned flags;
	GIVES(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&p, MIB));
	OK(cuDriverGetVersion(&version));
	CHECK(version == 13000);
	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	CHECK(count == 2);
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&p, MIB));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
	OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	CHECK(active == 0);
	GIVES(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&ctx, 2));
	OK(cuDevicePrimaryCtxRetain(&ctx, 1));
	OK(cuCtxSetCurrent(ctx));
	OK(cuDeviceTotalMem_v2(&total, 1));
	CHECK(total - free_bytes() == 500 * MIB);
	stacks(ctx);
	modules();
	OK(cuMemAlloc_v2(&p, 10 * MIB));
	OK(cuDevicePrimaryCtxRelease_v2(1));
	OK(cuCtxGetCurrent(&current));
	CHECK(current == ctx);
	GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&p, MIB));
	OK(cuDevicePrimaryCtxRetain(&current, 1));
	CHECK(current == ctx && total - free_bytes() == 500 * MIB);
	OK(cuDevicePrimaryCtxReset_v2(1));
	return 0;
}
