/* cuGetProcAddress: functions by name, as of the version of CUDA that first had each form of them. */
#include "driver.h"

#include <string.h>

struct function {
	const char *name;
	int since;
	void *plain;
	void *per_thread; /* the version whose stream 0 is per thread */
};

/* The versions of one name, from old to new. */
static const struct function functions[] = {
	{"cuInit", 2000, cuInit, NULL},
	{"cuDriverGetVersion", 2020, cuDriverGetVersion, NULL},
	{"cuGetErrorName", 6000, cuGetErrorName, NULL},
	{"cuGetErrorString", 6000, cuGetErrorString, NULL},
	{"cuGetProcAddress", 11030, cuGetProcAddress, NULL},
	{"cuGetProcAddress", 12000, cuGetProcAddress_v2, NULL},
	{"cuGetExportTable", 3000, cuGetExportTable, NULL},
	{"cuDeviceGetCount", 2000, cuDeviceGetCount, NULL},
	{"cuDeviceGet", 2000, cuDeviceGet, NULL},
	{"cuDeviceGetName", 2000, cuDeviceGetName, NULL},
	{"cuDeviceGetUuid", 9020, cuDeviceGetUuid, NULL},
	{"cuDeviceGetUuid", 11040, cuDeviceGetUuid_v2, NULL},
	{"cuDeviceTotalMem", 3020, cuDeviceTotalMem_v2, NULL},
	{"cuDeviceGetAttribute", 2000, cuDeviceGetAttribute, NULL},
	{"cuDeviceGetPCIBusId", 4010, cuDeviceGetPCIBusId, NULL},
	{"cuDeviceGetByPCIBusId", 4010, cuDeviceGetByPCIBusId, NULL},
	{"cuDeviceCanAccessPeer", 4000, cuDeviceCanAccessPeer, NULL},
	{"cuDeviceGetDefaultMemPool", 11020, cuDeviceGetDefaultMemPool, NULL},
	{"cuDeviceGetMemPool", 11020, cuDeviceGetMemPool, NULL},
	{"cuDeviceSetMemPool", 11020, cuDeviceSetMemPool, NULL},
	{"cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain, NULL},
	{"cuDevicePrimaryCtxRelease", 11000, cuDevicePrimaryCtxRelease_v2, NULL},
	{"cuDevicePrimaryCtxReset", 11000, cuDevicePrimaryCtxReset_v2, NULL},
	{"cuDevicePrimaryCtxGetState", 7000, cuDevicePrimaryCtxGetState, NULL},
	{"cuDevicePrimaryCtxSetFlags", 11000, cuDevicePrimaryCtxSetFlags_v2, NULL},
	{"cuCtxCreate", 3020, cuCtxCreate_v2, NULL},
	{"cuCtxCreate", 11040, cuCtxCreate_v3, NULL},
	{"cuCtxCreate", 12050, cuCtxCreate_v4, NULL},
	{"cuCtxDestroy", 4000, cuCtxDestroy_v2, NULL},
	{"cuCtxPushCurrent", 4000, cuCtxPushCurrent_v2, NULL},
	{"cuCtxPopCurrent", 4000, cuCtxPopCurrent_v2, NULL},
	{"cuCtxSetCurrent", 4000, cuCtxSetCurrent, NULL},
	{"cuCtxGetCurrent", 4000, cuCtxGetCurrent, NULL},
	{"cuCtxGetDevice", 2000, cuCtxGetDevice, NULL},
	{"cuCtxSynchronize", 2000, cuCtxSynchronize, NULL},
	{"cuCtxSetLimit", 3010, cuCtxSetLimit, NULL},
	{"cuCtxGetLimit", 3010, cuCtxGetLimit, NULL},
	{"cuCtxGetFlags", 7000, cuCtxGetFlags, NULL},
	{"cuCtxGetStreamPriorityRange", 5050, cuCtxGetStreamPriorityRange, NULL},
	{"cuCtxGetApiVersion", 3020, cuCtxGetApiVersion, NULL},
	{"cuCtxEnablePeerAccess", 4000, cuCtxEnablePeerAccess, NULL},
	{"cuMemAlloc", 3020, cuMemAlloc_v2, NULL},
	{"cuMemAllocPitch", 3020, cuMemAllocPitch_v2, NULL},
	{"cuMemAllocManaged", 6000, cuMemAllocManaged, NULL},
	{"cuMemFree", 3020, cuMemFree_v2, NULL},
	{"cuMemGetInfo", 3020, cuMemGetInfo_v2, NULL},
	{"cuMemGetAddressRange", 3020, cuMemGetAddressRange_v2, NULL},
	{"cuPointerGetAttribute", 4000, cuPointerGetAttribute, NULL},
	{"cuPointerGetAttributes", 7000, cuPointerGetAttributes, NULL},
	{"cuArrayCreate", 3020, cuArrayCreate_v2, NULL},
	{"cuArray3DCreate", 3020, cuArray3DCreate_v2, NULL},
	{"cuArrayDestroy", 2000, cuArrayDestroy, NULL},
	{"cuMipmappedArrayCreate", 5000, cuMipmappedArrayCreate, NULL},
	{"cuMipmappedArrayDestroy", 5000, cuMipmappedArrayDestroy, NULL},
	{"cuIpcGetMemHandle", 4010, cuIpcGetMemHandle, NULL},
	{"cuIpcOpenMemHandle", 11000, cuIpcOpenMemHandle_v2, NULL},
	{"cuIpcCloseMemHandle", 4010, cuIpcCloseMemHandle, NULL},
	{"cuMemAllocHost", 3020, cuMemAllocHost_v2, NULL},
	{"cuMemHostAlloc", 2020, cuMemHostAlloc, NULL},
	{"cuMemFreeHost", 2000, cuMemFreeHost, NULL},
	{"cuMemHostRegister", 6050, cuMemHostRegister_v2, NULL},
	{"cuMemHostUnregister", 4000, cuMemHostUnregister, NULL},
	{"cuMemHostGetDevicePointer", 3020, cuMemHostGetDevicePointer_v2, NULL},
	{"cuMemHostGetFlags", 2030, cuMemHostGetFlags, NULL},
	{"cuMemAddressReserve", 10020, cuMemAddressReserve, NULL},
	{"cuMemAddressFree", 10020, cuMemAddressFree, NULL},
	{"cuMemCreate", 10020, cuMemCreate, NULL},
	{"cuMemRelease", 10020, cuMemRelease, NULL},
	{"cuMemMap", 10020, cuMemMap, NULL},
	{"cuMemUnmap", 10020, cuMemUnmap, NULL},
	{"cuMemSetAccess", 10020, cuMemSetAccess, NULL},
	{"cuMemGetAccess", 10020, cuMemGetAccess, NULL},
	{"cuMemRetainAllocationHandle", 11000, cuMemRetainAllocationHandle, NULL},
	{"cuMemExportToShareableHandle", 10020, cuMemExportToShareableHandle, NULL},
	{"cuMemImportFromShareableHandle", 10020, cuMemImportFromShareableHandle, NULL},
	{"cuMemGetAllocationGranularity", 10020, cuMemGetAllocationGranularity, NULL},
	{"cuMemGetAllocationPropertiesFromHandle", 10020, cuMemGetAllocationPropertiesFromHandle, NULL},
	{"cuMemPoolCreate", 11020, cuMemPoolCreate, NULL},
	{"cuMemPoolDestroy", 11020, cuMemPoolDestroy, NULL},
	{"cuMemPoolTrimTo", 11020, cuMemPoolTrimTo, NULL},
	{"cuMemPoolSetAttribute", 11020, cuMemPoolSetAttribute, NULL},
	{"cuMemPoolGetAttribute", 11020, cuMemPoolGetAttribute, NULL},
	{"cuMemPoolSetAccess", 11020, cuMemPoolSetAccess, NULL},
	{"cuMemAllocAsync", 11020, cuMemAllocAsync, cuMemAllocAsync_ptsz},
	{"cuMemAllocFromPoolAsync", 11020, cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz},
	{"cuMemFreeAsync", 11020, cuMemFreeAsync, cuMemFreeAsync_ptsz},
	{"cuMemcpy", 4000, cuMemcpy, cuMemcpy_ptds},
	{"cuMemcpyHtoD", 3020, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds},
	{"cuMemcpyDtoH", 3020, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds},
	{"cuMemcpyDtoD", 3020, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds},
	{"cuMemcpyAsync", 4000, cuMemcpyAsync, cuMemcpyAsync_ptsz},
	{"cuMemcpyHtoDAsync", 3020, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz},
	{"cuMemcpyDtoHAsync", 3020, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz},
	{"cuMemcpyDtoDAsync", 3020, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz},
	{"cuMemcpy2DAsync", 3020, cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz},
	{"cuMemsetD8", 3020, cuMemsetD8_v2, cuMemsetD8_v2_ptds},
	{"cuMemsetD32", 3020, cuMemsetD32_v2, cuMemsetD32_v2_ptds},
	{"cuMemsetD8Async", 3020, cuMemsetD8Async, cuMemsetD8Async_ptsz},
	{"cuMemsetD32Async", 3020, cuMemsetD32Async, cuMemsetD32Async_ptsz},
	{"cuStreamCreate", 2000, cuStreamCreate, NULL},
	{"cuStreamCreateWithPriority", 5050, cuStreamCreateWithPriority, NULL},
	{"cuStreamDestroy", 4000, cuStreamDestroy_v2, NULL},
	{"cuStreamSynchronize", 2000, cuStreamSynchronize, cuStreamSynchronize_ptsz},
	{"cuStreamQuery", 2000, cuStreamQuery, cuStreamQuery_ptsz},
	{"cuStreamWaitEvent", 3020, cuStreamWaitEvent, cuStreamWaitEvent_ptsz},
	{"cuStreamWaitValue32", 11070, cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz},
	{"cuStreamGetPriority", 5050, cuStreamGetPriority, cuStreamGetPriority_ptsz},
	{"cuStreamGetFlags", 5050, cuStreamGetFlags, cuStreamGetFlags_ptsz},
	{"cuStreamGetCtx", 9020, cuStreamGetCtx, cuStreamGetCtx_ptsz},
	{"cuStreamIsCapturing", 10000, cuStreamIsCapturing, cuStreamIsCapturing_ptsz},
	{"cuStreamBeginCapture", 10010, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz},
	{"cuStreamEndCapture", 10000, cuStreamEndCapture, cuStreamEndCapture_ptsz},
	{"cuThreadExchangeStreamCaptureMode", 10010, cuThreadExchangeStreamCaptureMode, NULL},
	{"cuEventCreate", 2000, cuEventCreate, NULL},
	{"cuEventRecord", 2000, cuEventRecord, cuEventRecord_ptsz},
	{"cuEventQuery", 2000, cuEventQuery, NULL},
	{"cuEventSynchronize", 2000, cuEventSynchronize, NULL},
	{"cuEventDestroy", 4000, cuEventDestroy_v2, NULL},
	{"cuEventElapsedTime", 2000, cuEventElapsedTime, NULL},
	{"cuEventElapsedTime", 12080, cuEventElapsedTime_v2, NULL},
	{"cuModuleLoad", 2000, cuModuleLoad, NULL},
	{"cuModuleLoadData", 2000, cuModuleLoadData, NULL},
	{"cuModuleLoadDataEx", 2010, cuModuleLoadDataEx, NULL},
	{"cuModuleLoadFatBinary", 2000, cuModuleLoadFatBinary, NULL},
	{"cuModuleUnload", 2000, cuModuleUnload, NULL},
	{"cuModuleGetFunction", 2000, cuModuleGetFunction, NULL},
	{"cuLibraryLoadData", 12000, cuLibraryLoadData, NULL},
	{"cuLibraryLoadFromFile", 12000, cuLibraryLoadFromFile, NULL},
	{"cuLibraryUnload", 12000, cuLibraryUnload, NULL},
	{"cuLibraryGetKernel", 12000, cuLibraryGetKernel, NULL},
	{"cuLibraryGetModule", 12000, cuLibraryGetModule, NULL},
	{"cuKernelGetFunction", 12000, cuKernelGetFunction, NULL},
	{"cuLaunchKernel", 4000, cuLaunchKernel, cuLaunchKernel_ptsz},
	{"cuLaunchHostFunc", 10000, cuLaunchHostFunc, cuLaunchHostFunc_ptsz},
};

/* find returns the newest version of a function for a CUDA version; *known is whether there is one for any CUDA version. */
static const struct function *find(const char *name, int version, bool *known)
{
	const struct function *best = NULL;
	*known = false;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		if (strcmp(functions[i].name, name) != 0)
			continue;
		*known = true;
		if (functions[i].since <= version)
			best = &functions[i];
	}
	return best;
}

/* As with the real driver, a name that is not found is an error only in the first version of this function. */
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
	if (!name || !function || version > FAKE_DRIVER_VERSION)
		return CUDA_ERROR_INVALID_VALUE;
	bool known, per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	const struct function *f = find(name, version, &known);
	if (status)
		*status = f       ? CU_GET_PROC_ADDRESS_SUCCESS
		          : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
		                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	*function = !f ? NULL : per_thread && f->per_thread ? f->per_thread : f->plain;
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
	CUresult r = cuGetProcAddress_v2(name, function, version, flags, NULL);
	return r == CUDA_SUCCESS && !*function ? CUDA_ERROR_NOT_FOUND : r;
}

/* There are no tables; the real driver returns this error for an unknown id. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	(void)table, (void)id;
	return CUDA_ERROR_INVALID_VALUE;
}
