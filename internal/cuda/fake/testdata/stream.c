/* Order within a stream and between streams. */
#include "start.h"

#include <pthread.h>

#define LENGTH 256

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static CUresult inside; /* what a call gives in a host function */

static void at_gate(void *data)
{
	(void)data;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

static void calls_back(void *data)
{
	CUdeviceptr p;
	(void)data;
	inside = cuMemAlloc_v2(&p, MIB);
}

/* hold keeps a stream from going on until the gate opens. */
static void hold(CUstream s)
{
	pthread_mutex_lock(&gate);
	OK(cuLaunchHostFunc(s, at_gate, NULL));
}

static void within(CUstream s, CUdeviceptr p, unsigned *pinned)
{
	for (unsigned i = 0; i < LENGTH; i++) {
		OK(cuMemsetD32Async(p, i, 1, s));
		OK(cuMemcpyDtoHAsync_v2(pinned + i, p, 4, s));
	}
	OK(cuStreamSynchronize(s));
	for (unsigned i = 0; i < LENGTH; i++)
		CHECK(pinned[i] == i);
	OK(cuStreamQuery(s));
}

/* A wait for an event is for what was recorded when the wait was asked for. */
static void events(CUstream a, CUstream b, CUdeviceptr p, unsigned *pinned)
{
	CUevent first, second;
	float ms;
	OK(cuEventCreate(&first, CU_EVENT_DEFAULT));
	OK(cuEventCreate(&second, CU_EVENT_DEFAULT));
	OK(cuEventQuery(first)); /* never recorded */
	OK(cuEventRecord(first, a));
	hold(a);
	OK(cuMemsetD32Async(p, 1, 1, a));
	OK(cuEventRecord(second, a));
	OK(cuStreamWaitEvent(b, second, 0));
	OK(cuMemcpyDtoHAsync_v2(pinned, p, 4, b));
	GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(second));
	GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(a));
	GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(b));
	GIVES(CUDA_ERROR_NOT_READY, cuEventElapsedTime_v2(&ms, first, second));
	pthread_mutex_unlock(&gate);
	OK(cuStreamSynchronize(b));
	CHECK(*pinned == 1);
	OK(cuEventSynchronize(second));
	OK(cuEventElapsedTime(&ms, first, second));
	CHECK(ms >= 0);
	OK(cuEventDestroy_v2(first));
	OK(cuEventDestroy_v2(second));
}

/* An event that is recorded again, and passes there, holds what waits for the first record all the same. */
static void recorded_again(CUstream a, CUstream b, CUdeviceptr p, unsigned *pinned)
{
	CUevent e;
	CUstream idle;
	OK(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	OK(cuMemsetD32Async(p, 3, 1, a));
	OK(cuStreamSynchronize(a));
	hold(a);
	OK(cuMemsetD32Async(p, 4, 1, a));
	OK(cuEventRecord(e, a));
	OK(cuStreamWaitEvent(b, e, 0));
	OK(cuMemcpyDtoHAsync_v2(pinned, p, 4, b));
	OK(cuMemsetD32Async(p + 8, 1, 1, idle));
	OK(cuEventRecord(e, idle));
	OK(cuEventSynchronize(e));
	OK(cuEventQuery(e));
	OK(cuEventDestroy_v2(e));
	GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(b));
	pthread_mutex_unlock(&gate);
	OK(cuStreamSynchronize(b));
	CHECK(*pinned == 4);
	OK(cuStreamDestroy_v2(idle));
}

/* The legacy stream and a blocking one wait for each other; a non-blocking one waits for neither. */
static void legacy(CUdeviceptr p, unsigned *pinned)
{
	CUstream blocking, free_running;
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
	OK(cuMemsetD32Async(p, 5, 1, blocking));
	OK(cuStreamSynchronize(blocking));
	hold(blocking);
	OK(cuMemsetD32Async(p, 6, 1, blocking));
	OK(cuMemcpyDtoHAsync_v2(pinned, p, 4, CU_STREAM_LEGACY));
	OK(cuMemcpyDtoHAsync_v2(pinned + 1, p, 4, free_running));
	OK(cuStreamSynchronize(free_running));
	CHECK(pinned[1] == 5);
	GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(0));
	pthread_mutex_unlock(&gate);
	OK(cuStreamSynchronize(0));
	CHECK(pinned[0] == 6);

	hold(0);
	OK(cuMemsetD32Async(p, 8, 1, 0));
	OK(cuMemcpyDtoHAsync_v2(pinned, p, 4, blocking));
	OK(cuMemcpyDtoHAsync_v2(pinned + 1, p, 4, CU_STREAM_PER_THREAD));
	pthread_mutex_unlock(&gate);
	OK(cuStreamSynchronize(blocking));
	OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	CHECK(pinned[0] == 8 && pinned[1] == 8);
	OK(cuStreamDestroy_v2(blocking));
	OK(cuStreamDestroy_v2(free_running));
}

/* What a stream holds goes on after it is destroyed, and a free waits for it. */
static void destroyed(CUdeviceptr p)
{
	CUstream s;
	CUdeviceptr other;
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&other, MIB));
	hold(s);
	OK(cuMemsetD32Async(other, 9, MIB / 4, s));
	OK(cuMemcpyDtoDAsync_v2(p, other, 4, s));
	OK(cuStreamDestroy_v2(s));
	pthread_mutex_unlock(&gate);
	OK(cuMemFree_v2(other));
	OK(cuCtxSynchronize());
	CHECK(peek(p) == 9);
}

static void *hammer(void *argument)
{
	CUcontext ctx = argument;
	CUstream s;
	CUevent e;
	CUdeviceptr p;
	OK(cuCtxSetCurrent(ctx));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	for (unsigned i = 0; i < 50; i++) {
		OK(cuMemAllocAsync(&p, 65536, s));
		OK(cuMemsetD32Async(p, i, 16384, s));
		OK(cuEventRecord(e, s));
		OK(cuStreamWaitEvent(CU_STREAM_PER_THREAD, e, 0));
		OK(cuMemcpyDtoDAsync_v2(p, p + 4, 4, CU_STREAM_PER_THREAD));
		OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
		CHECK(peek(p) == i);
		OK(cuMemFreeAsync(p, s));
	}
	OK(cuEventDestroy_v2(e));
	OK(cuStreamDestroy_v2(s));
	return NULL;
}

static void threads(CUcontext ctx)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, hammer, ctx) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

int main(void)
{
	CUcontext ctx = start();
	CUstream a, b;
	CUdeviceptr p;
	unsigned *pinned;
	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreateWithPriority(&b, CU_STREAM_NON_BLOCKING, -1));
	OK(cuMemAlloc_v2(&p, MIB));
	OK(cuMemHostAlloc((void **)&pinned, LENGTH * sizeof *pinned, 0));
	within(a, p, pinned);
	within(0, p, pinned);
	events(a, b, p, pinned);
	recorded_again(a, b, p, pinned);
	legacy(p, pinned);
	destroyed(p);
	OK(cuLaunchHostFunc(a, calls_back, NULL));
	OK(cuStreamSynchronize(a));
	CHECK(inside == CUDA_ERROR_NOT_PERMITTED);
	threads(ctx);
	OK(cuStreamDestroy_v2(a));
	OK(cuStreamDestroy_v2(b));
	GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(0));
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree_v2(p));
	return 0;
}
