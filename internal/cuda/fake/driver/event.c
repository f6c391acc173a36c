/* Events. Each record is a generation, so that a wait is for the record that came before it. */
#include "driver.h"

#include <stdlib.h>

static struct table events;

static CUevent event_of(CUevent handle) { return table_at(&events, (uintptr_t)handle); }

void event_unref(CUevent e)
{
	if (--e->references == 0)
		free(e);
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
	ENTER(NEED_CONTEXT);
	if (!event || flags & ~7u || ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	CUevent e = calloc(1, sizeof *e);
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->handle = (struct entry){(uintptr_t)e, 1};
	e->ctx = context_current();
	e->flags = flags;
	e->references = 1;
	lock();
	bool ok = table_insert(&events, &e->handle);
	unlock();
	if (!ok) {
		free(e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*event = e;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	ENTER(NEED_CONTEXT);
	lock();
	CUevent e = event_of(event);
	if (e) {
		table_remove(&events, &e->handle);
		event_unref(e);
	}
	unlock();
	return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult stream_and_event(CUstream stream, CUevent event, CUstream *s, CUevent *e)
{
	CUresult r = stream_find(stream, s);
	*e = event_of(event);
	return r == CUDA_SUCCESS && !*e ? CUDA_ERROR_INVALID_HANDLE : r;
}

static CUresult queue_event(CUstream s, enum op_kind kind, CUevent e)
{
	struct op op = {.kind = kind, .event = {e, e->recorded}};
	e->references++;
	/* Nothing runs, so that in an idle stream the record is done at once and no thread is needed. */
	CUresult r = kind == OP_RECORD && stream_idle(s) ? queue_op_and_wait(s, &op) : queue_op(s, &op);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		event_unref(e);
	return r;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	ENTER(NEED_CONTEXT);
	CUstream s;
	CUevent e;
	lock();
	CUresult r = stream_and_event(stream, event, &s, &e);
	if (r == CUDA_SUCCESS && e->ctx != s->ctx)
		r = CUDA_ERROR_INVALID_HANDLE;
	if (r == CUDA_SUCCESS) {
		e->recorded++;
		r = queue_event(s, OP_RECORD, e);
	}
	unlock();
	return r;
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
	return cuEventRecord(event, stream ? stream : CU_STREAM_PER_THREAD);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	ENTER(NEED_CONTEXT);
	if (flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	CUstream s;
	CUevent e;
	lock();
	CUresult r = stream_and_event(stream, event, &s, &e);
	if (r == CUDA_SUCCESS && e->completed < e->recorded)
		r = queue_event(s, OP_WAIT, e);
	unlock();
	return r;
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags)
{
	return cuStreamWaitEvent(stream ? stream : CU_STREAM_PER_THREAD, event, flags);
}

CUresult cuEventQuery(CUevent event)
{
	ENTER(NEED_CONTEXT);
	CUresult r = CUDA_ERROR_INVALID_HANDLE;
	lock();
	CUevent e = event_of(event);
	if (e)
		r = e->completed < e->recorded ? CUDA_ERROR_NOT_READY : e->ctx->sticky;
	unlock();
	return r;
}

CUresult cuEventSynchronize(CUevent event)
{
	ENTER(NEED_CONTEXT);
	CUresult r = CUDA_ERROR_INVALID_HANDLE;
	lock();
	CUevent e = event_of(event);
	if (e) {
		e->references++;
		for (uint64_t last = e->recorded; e->completed < last;)
			progress_wait();
		pools_sync(e->ctx->device);
		r = e->ctx->sticky;
		event_unref(e);
	}
	unlock();
	return r;
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
	if (!start || !end || !start->recorded || !end->recorded || (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (start->completed < start->recorded || end->completed < end->recorded)
		return CUDA_ERROR_NOT_READY;
	*ms = (float)(end->at_ns - start->at_ns) / 1e6f;
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	ENTER(NEED_CONTEXT);
	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	CUresult r = elapsed(ms, event_of(start), event_of(end));
	unlock();
	return r;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) { return cuEventElapsedTime_v2(ms, start, end); }
