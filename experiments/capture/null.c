/* A libcuda.so.1 that does nothing, at once: what a traced call takes more than an untraced one is gmtrace's. */
#include <stddef.h>
#include <stdint.h>

static uint64_t next = 1 << 20;

int cuInit(unsigned flags) { return (void)flags, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return (void)device, *bytes = 1ULL << 37, 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return (void)device, *context = &next, 0; }
int cuCtxSetCurrent(void *context) { return (void)context, 0; }
int cuCtxPushCurrent_v2(void *context) { return (void)context, 0; }
int cuCtxPopCurrent_v2(void **context) { return *context = &next, 0; }
int cuCtxGetCurrent(void **context) { return *context = &next, 0; }
int cuCtxGetDevice(int *device) { return *device = 0, 0; }
int cuCtxSynchronize(void) { return 0; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { return *free = *total = 1ULL << 37, 0; }
int cuDeviceGetDefaultMemPool(void **pool, int device) { return (void)device, *pool = &next, 0; }
int cuDeviceGetMemPool(void **pool, int device) { return (void)device, *pool = &next, 0; }
int cuMemPoolSetAttribute(void *pool, int what, void *value) { return (void)pool, (void)what, (void)value, 0; }
int cuMemPoolGetAttribute(void *pool, int what, uint64_t *value) { return (void)pool, (void)what, *value = 1 << 25, 0; }
int cuMemAllocAsync(uint64_t *p, size_t size, void *stream) { return (void)size, (void)stream, *p = next += 512, 0; }
int cuMemFreeAsync(uint64_t p, void *stream) { return (void)p, (void)stream, 0; }
int cuMemAlloc_v2(uint64_t *p, size_t size) { return (void)size, *p = next += 512, 0; }
int cuMemFree_v2(uint64_t p) { return (void)p, 0; }
int cuModuleLoadData(void **module, const void *image) { return (void)image, *module = &next, 0; }
int cuModuleGetFunction(void **f, void *module, const char *name) { return (void)module, (void)name, *f = &next, 0; }
int cuLaunchKernel(void) { return 0; }
