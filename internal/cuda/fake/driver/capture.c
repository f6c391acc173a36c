/* Capture of streams. Captured work is dropped: there are no graphs. */
#include "driver.h"

#include <string.h>

static CUstream captures; /* guarded by the lock, like all below */
static atomic_uint count;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static _Thread_local char thread_mark; /* its address names the thread */

/* Functions that may wait, and those that allocate outside of streams. */
static bool unsafe(const char *function)
{
	static const char *const names[] = {
		"cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemAllocManaged", "cuMemFree_v2", "cuMemAllocHost_v2", "cuMemHostAlloc",
		"cuMemFreeHost", "cuMemcpy", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuCtxSynchronize",
		"cuStreamSynchronize", "cuStreamQuery", "cuEventSynchronize", "cuEventQuery",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(function, names[i]))
			return true;
	return false;
}

/* forbids returns whether a capture forbids unsafe calls in this thread. */
static bool forbids(CUstream s)
{
	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || s->capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	return s->capture.thread == &thread_mark ||
	       (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && s->capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult capture_check(const char *function)
{
	if (count == 0 || !unsafe(function))
		return CUDA_SUCCESS;
	CUresult r = CUDA_SUCCESS;
	lock();
	for (CUstream s = captures; s; s = s->capture.next)
		if (forbids(s)) {
			s->capture.status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
			r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	unlock();
	return r;
}

/* implicit returns whether a stream is being captured for which the legacy stream waits. */
static bool implicit(CUcontext ctx)
{
	for (CUstream s = captures; s; s = s->capture.next)
		if (s->ctx == ctx && !(s->flags & CU_STREAM_NON_BLOCKING))
			return true;
	return false;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	ENTER(NEED_CONTEXT);
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	CUstream s;
	lock();
	CUresult r = stream_find(stream, &s);
	if (r == CUDA_SUCCESS && s->legacy && implicit(s->ctx))
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	if (r == CUDA_SUCCESS)
		*status = s->capture.status;
	unlock();
	return r;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	ENTER(NEED_CONTEXT);
	if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstream s;
	lock();
	CUresult r = stream_find(stream, &s);
	if (r == CUDA_SUCCESS && s->legacy)
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (r == CUDA_SUCCESS && s->capture.status != CU_STREAM_CAPTURE_STATUS_NONE)
		r = CUDA_ERROR_ILLEGAL_STATE;
	if (r == CUDA_SUCCESS) {
		s->capture = (struct capture){CU_STREAM_CAPTURE_STATUS_ACTIVE, mode, &thread_mark, captures};
		captures = s;
		count++;
	}
	unlock();
	return r;
}

static void end(CUstream s)
{
	CUstream *at = &captures;
	while (*at != s)
		at = &(*at)->capture.next;
	*at = s->capture.next;
	s->capture = (struct capture){.status = CU_STREAM_CAPTURE_STATUS_NONE};
	count--;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	ENTER(NEED_CONTEXT);
	CUstream s;
	lock();
	CUresult r = stream_find(stream, &s);
	if (r == CUDA_SUCCESS && s->capture.status == CU_STREAM_CAPTURE_STATUS_NONE)
		r = CUDA_ERROR_ILLEGAL_STATE;
	bool valid = s && s->capture.status != CU_STREAM_CAPTURE_STATUS_INVALIDATED;
	if (r == CUDA_SUCCESS && valid && s->capture.thread != &thread_mark && s->capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (r == CUDA_SUCCESS) {
		end(s);
		r = valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		if (graph)
			*graph = NULL;
	}
	unlock();
	return r;
}

void capture_close(CUstream s)
{
	if (s->capture.status != CU_STREAM_CAPTURE_STATUS_NONE)
		end(s);
}

static CUstream per_thread(CUstream stream) { return stream ? stream : CU_STREAM_PER_THREAD; }

CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status)
{
	return cuStreamIsCapturing(per_thread(stream), status);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
	return cuStreamBeginCapture_v2(per_thread(stream), mode);
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
	return cuStreamEndCapture(per_thread(stream), graph);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	ENTER(NEED_INIT);
	if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode before = thread_mode;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
