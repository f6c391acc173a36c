/* The functions that the fake libcuda.so.1 exports. */
#ifndef CUDA_API_H
#define CUDA_API_H

#include "cuda_types.h"

#define API __attribute__((visibility("default")))

/* Resolution and errors. */
API CUresult cuInit(unsigned flags);
API CUresult cuDriverGetVersion(int *version);
API CUresult cuGetErrorName(CUresult error, const char **name);
API CUresult cuGetErrorString(CUresult error, const char **text);
API CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags);
API CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                                 CUdriverProcAddressQueryResult *status);
API CUresult cuGetExportTable(const void **table, const CUuuid *id);

/* Devices. */
API CUresult cuDeviceGetCount(int *count);
API CUresult cuDeviceGet(CUdevice *device, int ordinal);
API CUresult cuDeviceGetName(char *name, int size, CUdevice device);
API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
API CUresult cuDeviceGetPCIBusId(char *text, int size, CUdevice device);
API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text);
API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);

/* Contexts. */
API CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device);
API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active);
API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags);
API CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned flags, CUdevice device);
API CUresult cuCtxCreate_v3(CUcontext *ctx, void *affinity, int n, unsigned flags, CUdevice device);
API CUresult cuCtxCreate_v4(CUcontext *ctx, void *params, unsigned flags, CUdevice device);
API CUresult cuCtxDestroy_v2(CUcontext ctx);
API CUresult cuCtxPushCurrent_v2(CUcontext ctx);
API CUresult cuCtxPopCurrent_v2(CUcontext *ctx);
API CUresult cuCtxSetCurrent(CUcontext ctx);
API CUresult cuCtxGetCurrent(CUcontext *ctx);
API CUresult cuCtxGetDevice(CUdevice *device);
API CUresult cuCtxSynchronize(void);
API CUresult cuCtxSetLimit(int limit, size_t value);
API CUresult cuCtxGetLimit(size_t *value, int limit);
API CUresult cuCtxGetFlags(unsigned *flags);
API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
API CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned *version);
API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);

/* Memory. */
API CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t size);
API CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height, unsigned element);
API CUresult cuMemAllocManaged(CUdeviceptr *p, size_t size, unsigned flags);
API CUresult cuMemFree_v2(CUdeviceptr p);
API CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p);
API CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr p);
API CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *attributes, void **values, CUdeviceptr p);
API CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d);
API CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d);
API CUresult cuArrayDestroy(CUarray array);
API CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels);
API CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);
API CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr p);
API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *p, CUipcMemHandle handle, unsigned flags);
API CUresult cuIpcCloseMemHandle(CUdeviceptr p);

/* Host memory. */
API CUresult cuMemAllocHost_v2(void **p, size_t size);
API CUresult cuMemHostAlloc(void **p, size_t size, unsigned flags);
API CUresult cuMemFreeHost(void *p);
API CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned flags);
API CUresult cuMemHostUnregister(void *p);
API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *p, unsigned flags);
API CUresult cuMemHostGetFlags(unsigned *flags, void *p);

/* Virtual memory management. */
API CUresult cuMemAddressReserve(CUdeviceptr *p, size_t size, size_t alignment, CUdeviceptr hint,
                                 unsigned long long flags);
API CUresult cuMemAddressFree(CUdeviceptr p, size_t size);
API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                         unsigned long long flags);
API CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
API CUresult cuMemMap(CUdeviceptr p, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                      unsigned long long flags);
API CUresult cuMemUnmap(CUdeviceptr p, size_t size);
API CUresult cuMemSetAccess(CUdeviceptr p, size_t size, const CUmemAccessDesc *access, size_t n);
API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr p);
API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *p);
API CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                          CUmemAllocationHandleType type, unsigned long long flags);
API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                            CUmemAllocationHandleType type);
API CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop, int option);
API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle);

/* Memory pools. */
API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
API CUresult cuMemPoolDestroy(CUmemoryPool pool);
API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t n);
API CUresult cuMemAllocAsync(CUdeviceptr *p, size_t size, CUstream stream);
API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *p, size_t size, CUstream stream);
API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t size, CUmemoryPool pool, CUstream stream);
API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *p, size_t size, CUmemoryPool pool, CUstream stream);
API CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream);
API CUresult cuMemFreeAsync_ptsz(CUdeviceptr p, CUstream stream);

/* Copies. */
API CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size);
API CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t size);
API CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size);
API CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t size);
API CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size);
API CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t size);
API CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size);
API CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t size);
API CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream);
API CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream);
API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream);
API CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t size, CUstream stream);
API CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream);
API CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t size, CUstream stream);
API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream);
API CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream);
API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
API CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *copy, CUstream stream);
API CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char value, size_t n);
API CUresult cuMemsetD8_v2_ptds(CUdeviceptr p, unsigned char value, size_t n);
API CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned value, size_t n);
API CUresult cuMemsetD32_v2_ptds(CUdeviceptr p, unsigned value, size_t n);
API CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char value, size_t n, CUstream stream);
API CUresult cuMemsetD8Async_ptsz(CUdeviceptr p, unsigned char value, size_t n, CUstream stream);
API CUresult cuMemsetD32Async(CUdeviceptr p, unsigned value, size_t n, CUstream stream);
API CUresult cuMemsetD32Async_ptsz(CUdeviceptr p, unsigned value, size_t n, CUstream stream);

/* Streams and events. */
API CUresult cuStreamCreate(CUstream *stream, unsigned flags);
API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
API CUresult cuStreamDestroy_v2(CUstream stream);
API CUresult cuStreamSynchronize(CUstream stream);
API CUresult cuStreamSynchronize_ptsz(CUstream stream);
API CUresult cuStreamQuery(CUstream stream);
API CUresult cuStreamQuery_ptsz(CUstream stream);
API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
API CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags);
API CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, unsigned value, unsigned flags);
API CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address, unsigned value, unsigned flags);
API CUresult cuStreamGetPriority(CUstream stream, int *priority);
API CUresult cuStreamGetPriority_ptsz(CUstream stream, int *priority);
API CUresult cuStreamGetFlags(CUstream stream, unsigned *flags);
API CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned *flags);
API CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx);
API CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext *ctx);
API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
API CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status);
API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
API CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode);
API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
API CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph);
API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);
API CUresult cuEventCreate(CUevent *event, unsigned flags);
API CUresult cuEventRecord(CUevent event, CUstream stream);
API CUresult cuEventRecord_ptsz(CUevent event, CUstream stream);
API CUresult cuEventQuery(CUevent event);
API CUresult cuEventSynchronize(CUevent event);
API CUresult cuEventDestroy_v2(CUevent event);
API CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
API CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end);

/* Modules, libraries and launches. */
API CUresult cuModuleLoad(CUmodule *module, const char *path);
API CUresult cuModuleLoadData(CUmodule *module, const void *image);
API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, int *options, void **values);
API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
API CUresult cuModuleUnload(CUmodule module);
API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit, void **jitValues, unsigned nJit,
                               int *options, void **values, unsigned n);
API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *jit, void **jitValues, unsigned nJit,
                                   int *options, void **values, unsigned n);
API CUresult cuLibraryUnload(CUlibrary library);
API CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
API CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
API CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
API CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);
API CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);
API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data);
API CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *data);

#endif
