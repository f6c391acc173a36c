/* The functions that the fake CUDA runtime exports. */
#ifndef CUDART_H
#define CUDART_H

#include <stddef.h>

#define RUNTIME_API __attribute__((visibility("default")))

/* Runtime errors without a counterpart in the driver have numbers of their own; the others have equal numbers. */
typedef enum {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInitializationError = 3,
	cudaErrorInvalidMemcpyDirection = 21,
	cudaErrorInsufficientDriver = 35,
	cudaErrorInvalidDevice = 101,
	cudaErrorSymbolNotFound = 500,
	cudaErrorNotReady = 600,
	cudaErrorUnknown = 999,
} cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
enum cudaMemcpyKind {
	cudaMemcpyHostToHost = 0,
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost = 2,
	cudaMemcpyDeviceToDevice = 3,
	cudaMemcpyDefault = 4,
};
enum cudaDriverEntryPointQueryResult {
	cudaDriverEntryPointSuccess = 0,
	cudaDriverEntryPointSymbolNotFound = 1,
	cudaDriverEntryPointVersionNotSufficent = 2, /* so spelled in CUDA */
};
enum { cudaEnableDefault = 0, cudaEnableLegacyStream = 1, cudaEnablePerThreadDefaultStream = 2 };

RUNTIME_API cudaError_t cudaRuntimeGetVersion(int *version);
RUNTIME_API cudaError_t cudaDriverGetVersion(int *version);
RUNTIME_API cudaError_t cudaGetLastError(void);
RUNTIME_API cudaError_t cudaPeekAtLastError(void);
RUNTIME_API const char *cudaGetErrorString(cudaError_t error);
RUNTIME_API const char *cudaGetErrorName(cudaError_t error);
RUNTIME_API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                                enum cudaDriverEntryPointQueryResult *status);
RUNTIME_API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                                         unsigned long long flags,
                                                         enum cudaDriverEntryPointQueryResult *status);

RUNTIME_API cudaError_t cudaGetDeviceCount(int *count);
RUNTIME_API cudaError_t cudaSetDevice(int device);
RUNTIME_API cudaError_t cudaGetDevice(int *device);
RUNTIME_API cudaError_t cudaDeviceSynchronize(void);
RUNTIME_API cudaError_t cudaDeviceReset(void);

RUNTIME_API cudaError_t cudaMalloc(void **p, size_t size);
RUNTIME_API cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height);
RUNTIME_API cudaError_t cudaMallocManaged(void **p, size_t size, unsigned flags);
RUNTIME_API cudaError_t cudaFree(void *p);
RUNTIME_API cudaError_t cudaMallocAsync(void **p, size_t size, cudaStream_t stream);
RUNTIME_API cudaError_t cudaMallocFromPoolAsync(void **p, size_t size, cudaMemPool_t pool, cudaStream_t stream);
RUNTIME_API cudaError_t cudaFreeAsync(void *p, cudaStream_t stream);
RUNTIME_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
RUNTIME_API cudaError_t cudaMallocHost(void **p, size_t size);
RUNTIME_API cudaError_t cudaHostAlloc(void **p, size_t size, unsigned flags);
RUNTIME_API cudaError_t cudaFreeHost(void *p);
RUNTIME_API cudaError_t cudaHostRegister(void *p, size_t size, unsigned flags);
RUNTIME_API cudaError_t cudaHostUnregister(void *p);
RUNTIME_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

RUNTIME_API cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind);
RUNTIME_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind,
                                        cudaStream_t stream);
RUNTIME_API cudaError_t cudaMemset(void *p, int value, size_t size);
RUNTIME_API cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t stream);
RUNTIME_API cudaError_t cudaStreamCreate(cudaStream_t *stream);
RUNTIME_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
RUNTIME_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);

#endif
