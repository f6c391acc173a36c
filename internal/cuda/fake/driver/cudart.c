/* A small CUDA runtime over the driver, built as a shared library and as an archive. As the real one does, it opens
 * libcuda.so.1, finds cuGetProcAddress_v2 there and asks that for everything else. */
#include "cudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

#include "cuda_api.h"

#define RUNTIME_VERSION 13000
#define DEVICES_MAX 64

/* Names, with the version that CUDA 13 returns. */
#define DRIVER_FUNCTIONS(X)                                      \
	X(cuInit, cuInit)                                        \
	X(cuDriverGetVersion, cuDriverGetVersion)                \
	X(cuGetErrorName, cuGetErrorName)                        \
	X(cuGetErrorString, cuGetErrorString)                    \
	X(cuDeviceGetCount, cuDeviceGetCount)                    \
	X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)    \
	X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2)   \
	X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool)  \
	X(cuCtxGetCurrent, cuCtxGetCurrent)                      \
	X(cuCtxSetCurrent, cuCtxSetCurrent)                      \
	X(cuCtxGetDevice, cuCtxGetDevice)                        \
	X(cuCtxSynchronize, cuCtxSynchronize)                    \
	X(cuMemAlloc, cuMemAlloc_v2)                             \
	X(cuMemAllocPitch, cuMemAllocPitch_v2)                   \
	X(cuMemAllocManaged, cuMemAllocManaged)                  \
	X(cuMemFree, cuMemFree_v2)                               \
	X(cuMemAllocAsync, cuMemAllocAsync)                      \
	X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync)      \
	X(cuMemFreeAsync, cuMemFreeAsync)                        \
	X(cuMemHostAlloc, cuMemHostAlloc)                        \
	X(cuMemAllocHost, cuMemAllocHost_v2)                     \
	X(cuMemFreeHost, cuMemFreeHost)                          \
	X(cuMemHostRegister, cuMemHostRegister_v2)               \
	X(cuMemHostUnregister, cuMemHostUnregister)              \
	X(cuMemGetInfo, cuMemGetInfo_v2)                         \
	X(cuMemcpy, cuMemcpy)                                    \
	X(cuMemcpyAsync, cuMemcpyAsync)                          \
	X(cuMemsetD8, cuMemsetD8_v2)                             \
	X(cuMemsetD8Async, cuMemsetD8Async)                      \
	X(cuStreamCreate, cuStreamCreate)                        \
	X(cuStreamDestroy, cuStreamDestroy_v2)                   \
	X(cuStreamSynchronize, cuStreamSynchronize)

#define MEMBER(name, form) __typeof__(form) *name;
static struct { DRIVER_FUNCTIONS(MEMBER) } driver;
static __typeof__(cuGetProcAddress_v2) *get_proc_address;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t opened;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primaries[DEVICES_MAX]; /* retained until cudaDeviceReset */
static _Thread_local int chosen;         /* the thread's device */
static _Thread_local cudaError_t last;

static void driver_open(void)
{
	opened = cudaErrorInsufficientDriver;
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		return;
	*(void **)&get_proc_address = dlsym(library, "cuGetProcAddress_v2");
	if (!get_proc_address)
		return;
#define GET(name, form)                                                                \
	get_proc_address(#name, (void **)&driver.name, RUNTIME_VERSION, 0, NULL);      \
	if (!driver.name)                                                              \
		return;
	DRIVER_FUNCTIONS(GET)
	opened = (cudaError_t)driver.cuInit(0);
}

/* failed keeps an error for cudaGetLastError and returns it. */
static cudaError_t failed(cudaError_t error)
{
	if (error != cudaSuccess)
		last = error;
	return error;
}

static cudaError_t result(CUresult r) { return failed((cudaError_t)r); }

static cudaError_t ready(void)
{
	pthread_once(&once, driver_open);
	return failed(opened);
}

static CUresult primary_current(int device)
{
	if (device < 0 || device >= DEVICES_MAX)
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult r = CUDA_SUCCESS;
	pthread_mutex_lock(&mutex);
	if (!primaries[device])
		r = driver.cuDevicePrimaryCtxRetain(&primaries[device], device);
	CUcontext primary = primaries[device];
	pthread_mutex_unlock(&mutex);
	return r == CUDA_SUCCESS ? driver.cuCtxSetCurrent(primary) : r;
}

/* context_ready makes the primary context of the thread's device current if the thread has none. It creates the context when first
 * needed. */
static cudaError_t context_ready(void)
{
	if (ready() != cudaSuccess)
		return last;
	CUcontext current;
	CUresult r = driver.cuCtxGetCurrent(&current);
	if (r == CUDA_SUCCESS && !current)
		r = primary_current(chosen);
	return result(r);
}

/* WITH returns the result of a driver call in the thread's context. */
#define WITH(call)                                       \
	do {                                             \
		cudaError_t error = context_ready();     \
		return error ? error : result(driver.call); \
	} while (0)

static CUdeviceptr address(const void *p) { return (uintptr_t)p; }

cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return failed(cudaErrorInvalidValue);
	*version = RUNTIME_VERSION;
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	cudaError_t error = ready();
	return error ? error : result(driver.cuDriverGetVersion(version));
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last;
	last = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void) { return last; }

const char *cudaGetErrorString(cudaError_t error)
{
	const char *text = NULL;
	pthread_once(&once, driver_open);
	if (driver.cuGetErrorString)
		driver.cuGetErrorString((CUresult)error, &text);
	return text ? text : "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error)
{
	const char *text = NULL;
	pthread_once(&once, driver_open);
	if (driver.cuGetErrorName)
		driver.cuGetErrorName((CUresult)error, &text);
	return text ? text : "unrecognized error code";
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
	if (ready() != cudaSuccess)
		return last;
	if (!symbol || !function)
		return failed(cudaErrorInvalidValue);
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	CUresult r = get_proc_address(symbol, function, (int)version, flags, &found);
	if (status)
		*status = (enum cudaDriverEntryPointQueryResult)found;
	return result(r);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status)
{
	return cudaGetDriverEntryPointByVersion(symbol, function, RUNTIME_VERSION, flags, status);
}

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t error = ready();
	return error ? error : result(driver.cuDeviceGetCount(count));
}

cudaError_t cudaSetDevice(int device)
{
	cudaError_t error = ready();
	int count;
	if (error || (error = result(driver.cuDeviceGetCount(&count))))
		return error;
	if (device < 0 || device >= count)
		return failed(cudaErrorInvalidDevice);
	chosen = device;
	return result(primary_current(device));
}

cudaError_t cudaGetDevice(int *device)
{
	cudaError_t error = ready();
	if (error)
		return error;
	if (!device)
		return failed(cudaErrorInvalidValue);
	if (driver.cuCtxGetDevice(device) != CUDA_SUCCESS)
		*device = chosen;
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) { WITH(cuCtxSynchronize()); }

cudaError_t cudaDeviceReset(void)
{
	cudaError_t error = ready();
	if (error)
		return error;
	pthread_mutex_lock(&mutex);
	CUresult r = driver.cuDevicePrimaryCtxReset(chosen);
	primaries[chosen] = NULL;
	pthread_mutex_unlock(&mutex);
	driver.cuCtxSetCurrent(NULL);
	return result(r);
}

cudaError_t cudaMalloc(void **p, size_t size)
{
	if (!p)
		return failed(cudaErrorInvalidValue);
	if (size == 0) {
		*p = NULL;
		return context_ready();
	}
	WITH(cuMemAlloc((CUdeviceptr *)p, size));
}

cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height)
{
	WITH(cuMemAllocPitch((CUdeviceptr *)p, pitch, width, height, 4));
}

cudaError_t cudaMallocManaged(void **p, size_t size, unsigned flags)
{
	WITH(cuMemAllocManaged((CUdeviceptr *)p, size, flags));
}

cudaError_t cudaFree(void *p) { WITH(cuMemFree(address(p))); }

cudaError_t cudaMallocAsync(void **p, size_t size, cudaStream_t stream)
{
	WITH(cuMemAllocAsync((CUdeviceptr *)p, size, stream));
}

cudaError_t cudaMallocFromPoolAsync(void **p, size_t size, cudaMemPool_t pool, cudaStream_t stream)
{
	WITH(cuMemAllocFromPoolAsync((CUdeviceptr *)p, size, pool, stream));
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream) { WITH(cuMemFreeAsync(address(p), stream)); }

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	WITH(cuDeviceGetDefaultMemPool(pool, device));
}

cudaError_t cudaMallocHost(void **p, size_t size) { WITH(cuMemAllocHost(p, size)); }

cudaError_t cudaHostAlloc(void **p, size_t size, unsigned flags) { WITH(cuMemHostAlloc(p, size, flags)); }

cudaError_t cudaFreeHost(void *p) { WITH(cuMemFreeHost(p)); }

cudaError_t cudaHostRegister(void *p, size_t size, unsigned flags) { WITH(cuMemHostRegister(p, size, flags)); }

cudaError_t cudaHostUnregister(void *p) { WITH(cuMemHostUnregister(p)); }

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) { WITH(cuMemGetInfo(free, total)); }

/* The driver infers from an address whether it is on the host or a device. */
cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind)
{
	if (kind > cudaMemcpyDefault)
		return failed(cudaErrorInvalidMemcpyDirection);
	WITH(cuMemcpy(address(dst), address(src), size));
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	if (kind > cudaMemcpyDefault)
		return failed(cudaErrorInvalidMemcpyDirection);
	WITH(cuMemcpyAsync(address(dst), address(src), size, stream));
}

cudaError_t cudaMemset(void *p, int value, size_t size)
{
	WITH(cuMemsetD8(address(p), (unsigned char)value, size));
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t stream)
{
	WITH(cuMemsetD8Async(address(p), (unsigned char)value, size, stream));
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { WITH(cuStreamCreate(stream, CU_STREAM_DEFAULT)); }

cudaError_t cudaStreamDestroy(cudaStream_t stream) { WITH(cuStreamDestroy(stream)); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { WITH(cuStreamSynchronize(stream)); }
