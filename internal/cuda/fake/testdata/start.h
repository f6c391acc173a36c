/* A context on the first device, and what several programs need. */
#ifndef START_H
#define START_H

#include "check.h"
#include "cuda_api.h"

static inline CUcontext start(void)
{
	CUcontext ctx;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	return ctx;
}

static inline size_t free_bytes(void)
{
	size_t free, total;
	OK(cuMemGetInfo_v2(&free, &total));
	CHECK(free <= total);
	return free;
}

static inline CUmemAllocationProp on_device(CUmemAllocationHandleType type)
{
	CUmemAllocationProp prop;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.requestedHandleTypes = type;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return prop;
}

static inline CUmemAccessDesc access_of(CUmemAccess_flags flags)
{
	return (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
}

static inline unsigned peek(CUdeviceptr p)
{
	unsigned value;
	OK(cuMemcpyDtoH_v2(&value, p, sizeof value));
	return value;
}

static inline void poke(CUdeviceptr p, unsigned value) { OK(cuMemcpyHtoD_v2(p, &value, sizeof value)); }

#endif
