/* Events. A wait is for the last recording before it. */
#include "races.h"

#include <stdlib.h>

static struct table events;

static CUevent event_of(CUevent handle) { return table_at(&events, (uintptr_t)handle); }

void record_unref(struct record *record)
{
	if (!record || --record->references)
		return;
	free(record->clock);
	free(record);
}

static bool pending(CUevent e) { return e->last && !e->last->done; }

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
		record_unref(e->last);
		free(e);
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

/* queue_record queues a new recording, which becomes the event's last. The caller must hold the only reference to it. */
static CUresult queue_record(CUstream s, CUevent e, struct record *record)
{
	struct op op = {.kind = OP_RECORD, .record = record};
	struct record *before = e->last;
	if (!record)
		return CUDA_ERROR_OUT_OF_MEMORY;
	record->references = 2;
	e->last = record;
	/* Nothing runs, so that in an idle stream the record is done at once and no thread is needed. */
	CUresult r = stream_idle(s) ? queue_op_and_wait(s, &op) : queue_op(s, &op);
	if (r == CUDA_ERROR_OUT_OF_MEMORY) {
		e->last = before;
		free(record->clock);
		free(record);
		return r;
	}
	record_unref(before);
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
	if (r == CUDA_SUCCESS)
		r = queue_record(s, e, calloc(1, sizeof *e->last));
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
	if (r == CUDA_SUCCESS && s->capture.status == CU_STREAM_CAPTURE_STATUS_NONE)
		races_wait(s, e->last);
	if (r == CUDA_SUCCESS && pending(e)) {
		struct op op = {.kind = OP_WAIT, .record = e->last};
		e->last->references++;
		r = queue_op(s, &op);
		if (r == CUDA_ERROR_OUT_OF_MEMORY)
			record_unref(e->last);
	}
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
		r = pending(e) || races_refuse(e->last) ? CUDA_ERROR_NOT_READY : e->ctx->sticky;
	if (r == CUDA_SUCCESS)
		races_know(e->last);
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
		CUcontext ctx = e->ctx;
		struct record *last = e->last;
		if (last)
			last->references++;
		while (last && !last->done)
			progress_wait();
		races_know(last);
		record_unref(last);
		pools_sync(ctx->device);
		r = ctx->sticky;
	}
	unlock();
	return r;
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
	if (!start || !end || !start->last || !end->last || (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (pending(start) || pending(end) || races_refuse(end->last))
		return CUDA_ERROR_NOT_READY;
	races_know(start->last);
	races_know(end->last);
	*ms = (float)(end->last->at_ns - start->last->at_ns) / 1e6f;
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
