/* Copies and fills of memory that is mapped on another device: the one whose stream does the work must have access to all of it. With two
 * devices. */
#include "start.h"

static CUcontext contexts[2];
static CUstream streams[2];

static CUdeviceptr mapped(int device, unsigned mask)
{
	CUmemAllocationProp prop = on_device(0);
	prop.location.id = device;
	CUmemAccessDesc access[2];
	size_t n = 0;
	for (int i = 0; i < 2; i++)
		if (mask >> i & 1)
			access[n++] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, i}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;
	OK(cuMemCreate(&h, 2 * MIB, &prop, 0));
	OK(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
	OK(cuMemMap(p, 2 * MIB, 0, h, 0));
	OK(cuMemSetAccess(p, 2 * MIB, access, n));
	return p;
}

/* copies copies both ways in a stream of a device. */
static void copies(int device, CUdeviceptr a, CUdeviceptr b, CUresult want)
{
	OK(cuCtxSetCurrent(contexts[device]));
	GIVES(want, cuMemcpyDtoDAsync_v2(a, b, MIB, streams[device]));
	GIVES(want, cuMemcpyAsync(b, a, MIB, streams[device]));
	OK(cuStreamSynchronize(streams[device]));
}

int main(void)
{
	CUdeviceptr plain[2];
	OK(cuInit(0));
	for (int i = 0; i < 2; i++) {
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
		OK(cuCtxSetCurrent(contexts[i]));
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc_v2(&plain[i], 2 * MIB));
	}
	CUdeviceptr own0 = mapped(0, 1), own1 = mapped(1, 2), both0 = mapped(0, 3), both1 = mapped(1, 3);
	for (int i = 0; i < 2; i++) {
		copies(i, plain[0], plain[1], CUDA_SUCCESS);
		copies(i, own0, own1, CUDA_ERROR_INVALID_VALUE);
		copies(i, both0, both1, CUDA_SUCCESS);
		copies(i, both0, own1, i == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
		copies(i, own0, both1, i == 1 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
		copies(i, own0, plain[1], i == 1 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
	}
	OK(cuCtxSetCurrent(contexts[1]));
	GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD32Async(own0, 7, 1024, streams[1]));
	OK(cuMemsetD32Async(both0, 7, 1024, streams[1]));
	OK(cuStreamSynchronize(streams[1]));
	return 0;
}
