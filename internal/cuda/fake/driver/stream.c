/* The streams' side of the API. */
#include "races.h"

static CUstream per_thread(CUstream stream) { return stream ? stream : CU_STREAM_PER_THREAD; }

static CUresult create(CUstream *stream, unsigned flags, int priority)
{
	if (!stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	CUstream s = stream_open(context_current(), flags, priority);
	unlock();
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*stream = s;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	ENTER(NEED_CONTEXT);
	return create(stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	ENTER(NEED_CONTEXT);
	return create(stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	ENTER(NEED_CONTEXT);
	if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	CUstream s;
	lock();
	CUresult r = stream_find(stream, &s);
	if (r == CUDA_SUCCESS)
		stream_close(s);
	unlock();
	return r;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	ENTER(NEED_CONTEXT);
	CUstream s;
	lock();
	CUresult r = stream_find(stream, &s);
	if (r == CUDA_SUCCESS) {
		CUcontext ctx = s->ctx;
		stream_drain(s);
		races_sync(s);
		pools_sync(ctx->device);
		r = ctx->sticky;
	}
	unlock();
	return r;
}

CUresult cuStreamSynchronize_ptsz(CUstream stream) { return cuStreamSynchronize(per_thread(stream)); }

CUresult cuStreamQuery(CUstream stream)
{
	ENTER(NEED_CONTEXT);
	CUstream s;
	lock();
	CUresult r = stream_find(stream, &s);
	if (r == CUDA_SUCCESS)
		r = stream_done(s) && !races_refuse_stream(s) ? s->ctx->sticky : CUDA_ERROR_NOT_READY;
	if (r == CUDA_SUCCESS)
		races_sync(s);
	unlock();
	return r;
}

CUresult cuStreamQuery_ptsz(CUstream stream) { return cuStreamQuery(per_thread(stream)); }

/* STREAM_GET defines a function that returns a field of a stream. */
#define STREAM_GET(name, type, field)                          \
	CUresult name(CUstream stream, type *value)            \
	{                                                      \
		ENTER(NEED_CONTEXT);                           \
		CUstream s;                                    \
		lock();                                        \
		CUresult r = stream_find(stream, &s);          \
		if (r == CUDA_SUCCESS)                         \
			*value = s->field;                     \
		unlock();                                      \
		return r;                                      \
	}                                                      \
	CUresult name##_ptsz(CUstream stream, type *value) { return name(per_thread(stream), value); }

STREAM_GET(cuStreamGetPriority, int, priority)
STREAM_GET(cuStreamGetFlags, unsigned, flags)
STREAM_GET(cuStreamGetCtx, CUcontext, ctx)

/* Only words of pinned memory of the host, and only waits for equality. */
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, unsigned value, unsigned flags)
{
	ENTER(NEED_CONTEXT);
	if (flags != CU_STREAM_WAIT_VALUE_EQ)
		return CUDA_ERROR_INVALID_VALUE;
	struct op op = {.kind = OP_AWAIT_WORD, .word = {(const uint32_t *)(uintptr_t)address, value}};
	CUstream s;
	lock();
	const struct block *b = table_covering(&blocks, address);
	CUresult r = b && b->kind == BLOCK_HOST ? stream_find(stream, &s) : CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = queue_op(s, &op);
	unlock();
	return r;
}

CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address, unsigned value, unsigned flags)
{
	return cuStreamWaitValue32_v2(per_thread(stream), address, value, flags);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	ENTER(NEED_CONTEXT);
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	struct op op = {.kind = OP_CALL, .call = {function, data}};
	CUstream s;
	lock();
	CUresult r = stream_find(stream, &s);
	if (r == CUDA_SUCCESS)
		r = queue_op(s, &op);
	unlock();
	return r;
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *data)
{
	return cuLaunchHostFunc(per_thread(stream), function, data);
}
