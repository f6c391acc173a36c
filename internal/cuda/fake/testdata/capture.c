/* Stream capture: what it forbids, to whom, and what becomes of work. */
#include "start.h"

#include <pthread.h>

static CUstreamCaptureStatus status_of(CUstream s)
{
	CUstreamCaptureStatus status;
	OK(cuStreamIsCapturing(s, &status));
	return status;
}

static CUresult allocate(void)
{
	CUdeviceptr p;
	CUresult r = cuMemAlloc_v2(&p, MIB);
	if (r == CUDA_SUCCESS)
		OK(cuMemFree_v2(p));
	return r;
}

static CUresult allocate_relaxed(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	CUresult r = allocate();
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
	return r;
}

struct other {
	CUcontext ctx;
	CUstream captured;
	CUresult allocated, ended;
};

static void *elsewhere(void *argument)
{
	struct other *o = argument;
	CUgraph graph;
	OK(cuCtxSetCurrent(o->ctx));
	o->allocated = allocate();
	o->ended = cuStreamEndCapture(o->captured, &graph);
	return NULL;
}

static struct other from_elsewhere(CUcontext ctx, CUstream captured)
{
	struct other o = {.ctx = ctx, .captured = captured};
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, elsewhere, &o) == 0);
	pthread_join(thread, NULL);
	return o;
}

static void modes(CUcontext ctx, CUstream s)
{
	static const struct {
		CUstreamCaptureMode mode;
		CUresult here, elsewhere, ended;
	} cases[] = {
		{CU_STREAM_CAPTURE_MODE_GLOBAL, 900, 900, 901},
		{CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 900, 0, 908},
		{CU_STREAM_CAPTURE_MODE_RELAXED, 0, 0, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CUgraph graph;
		OK(cuStreamBeginCapture_v2(s, cases[i].mode));
		CHECK(status_of(s) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
		GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(s, cases[i].mode));
		OK(allocate_relaxed());
		OK(cuStreamEndCapture(s, &graph));

		OK(cuStreamBeginCapture_v2(s, cases[i].mode));
		GIVES(cases[i].here, allocate());
		CHECK(status_of(s) == (cases[i].here ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE));
		GIVES(cases[i].here ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS, cuStreamEndCapture(s, &graph));

		OK(cuStreamBeginCapture_v2(s, cases[i].mode));
		struct other o = from_elsewhere(ctx, s);
		CHECK(o.allocated == cases[i].elsewhere && o.ended == cases[i].ended);
		if (o.ended)
			cuStreamEndCapture(s, &graph);
		CHECK(status_of(s) == CU_STREAM_CAPTURE_STATUS_NONE);
	}
	OK(allocate());
}

/* Work in a captured stream is not done, and another stream's is. */
static void work(CUstream s, CUstream other)
{
	CUdeviceptr p;
	CUevent e;
	CUgraph graph;
	OK(cuMemAlloc_v2(&p, MIB));
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	poke(p, 1);
	poke(p + 4, 1);
	OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemsetD32Async(p, 2, 1, s));
	OK(cuEventRecord(e, s));
	OK(cuMemsetD32Async(p + 4, 2, 1, other));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuStreamSynchronize(s));
	OK(cuStreamSynchronize(other));
	CHECK(peek(p) == 1 && peek(p + 4) == 2);
	OK(cuEventDestroy_v2(e));
	OK(cuMemFree_v2(p));
}

/* The legacy stream waits for a blocking one, and so may not be used while that is captured. */
static void legacy(void)
{
	CUstream blocking;
	CUgraph graph;
	CUstreamCaptureStatus status;
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(0, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(0, &status));
	OK(cuStreamEndCapture(blocking, &graph));
	CHECK(status_of(0) == CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamDestroy_v2(blocking));
	OK(allocate());
}

int main(void)
{
	CUcontext ctx = start();
	CUstream s, other;
	CUgraph graph;
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, &graph));
	modes(ctx, s);
	work(s, other);
	legacy();
	OK(cuStreamDestroy_v2(s));
	OK(cuStreamDestroy_v2(other));
	return 0;
}
