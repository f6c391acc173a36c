/* Streams are threads with a queue. A thread starts with the first operation that cannot run at once. */
#include "races.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static CUstream streams; /* all that were ever made; closed ones are reused */
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;

void progress_wait(void)
{
	pthread_cond_wait(&progress, &driver_mutex);
}

static bool blocking(CUstream s) { return !s->legacy && !(s->flags & CU_STREAM_NON_BLOCKING); }

static bool passed(const struct after *a) { return a->stream->done >= a->sequence; }

CUstream stream_open(CUcontext ctx, unsigned flags, int priority)
{
	CUstream s = streams;
	while (s && (s->live || s->running || s->head))
		s = s->next;
	if (!s) {
		s = calloc(1, sizeof *s);
		if (!s)
			return NULL;
		pthread_cond_init(&s->wake, NULL);
		s->tail = &s->head;
		s->next = streams;
		streams = s;
	}
	s->ctx = ctx;
	s->flags = flags;
	s->priority = priority;
	s->legacy = false;
	s->owner = NULL;
	s->live = true;
	races_open(s);
	return s;
}

/* stream_close lets queued work finish, as cuStreamDestroy does. */
void stream_close(CUstream s)
{
	capture_close(s);
	races_close(s);
	s->live = false;
	pthread_cond_signal(&s->wake);
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* accessible checks a range again when its operation runs: the memory may have been unmapped too early. */
static bool accessible(CUcontext ctx, uint64_t address, uint64_t size)
{
	lock();
	bool ok = device_range(ctx->device, address, size);
	unlock();
	return ok;
}

static bool copy(CUcontext ctx, const struct op *op)
{
	uint64_t dst = op->copy.dst, src = op->copy.src, size = op->copy.size, rows = op->copy.rows, pitch = op->copy.pitch;
	if ((op->copy.dst_device && !accessible(ctx, dst, rows * size)) ||
	    (op->copy.src_device && !accessible(ctx, src, (rows - 1) * pitch + size)))
		return false;
	for (uint64_t i = 0; i < rows; i++)
		memmove((void *)(uintptr_t)(dst + i * size), (const void *)(uintptr_t)(src + i * pitch), size);
	return true;
}

static bool set(CUcontext ctx, const struct op *op)
{
	uint64_t width = op->kind == OP_SET32 ? 4 : 1;
	if (!accessible(ctx, op->set.dst, op->set.count * width))
		return false;
	if (width == 1) {
		memset((void *)(uintptr_t)op->set.dst, (int)op->set.value, op->set.count);
		return true;
	}
	uint32_t *p = (uint32_t *)(uintptr_t)op->set.dst;
	for (uint64_t i = 0; i < op->set.count; i++)
		p[i] = op->set.value;
	return true;
}

/* op_run does the slow part of an operation, without the lock. */
static void op_run(CUcontext ctx, const struct op *op, const char *function)
{
	bool ok = true;
	if (op->kind == OP_COPY || op->kind == OP_SET8 || op->kind == OP_SET32)
		fault_work(function);
	if (op->kind == OP_COPY)
		ok = copy(ctx, op);
	else if (op->kind == OP_SET8 || op->kind == OP_SET32)
		ok = set(ctx, op);
	else if (op->kind == OP_CALL) {
		in_host_function = true;
		op->call.function(op->call.data);
		in_host_function = false;
	}
	if (!ok)
		ctx->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* op_finish does the rest, under the lock. */
static void op_finish(const struct op *op)
{
	if (op->kind == OP_RECORD) {
		op->record->at_ns = now_ns();
		op->record->done = true;
	}
	if (op->kind == OP_RECORD || op->kind == OP_WAIT)
		record_unref(op->record);
	if (op->kind == OP_FREE)
		pool_block_done(op->block);
}

/* captured drops an operation that would go into a graph. */
static bool captured(CUstream s, const struct op *op)
{
	if (s->capture.status == CU_STREAM_CAPTURE_STATUS_NONE)
		return false;
	op_finish(op);
	return true;
}

static bool ready(const struct op *op)
{
	for (size_t i = 0; i < op->afters; i++)
		if (!passed(&op->after[i]))
			return false;
	if (op->kind == OP_AWAIT_WORD)
		return __atomic_load_n(op->word.at, __ATOMIC_ACQUIRE) == op->word.value;
	return op->kind != OP_WAIT || op->record->done;
}

/* look_again waits a little: who writes a word tells nobody. */
static void look_again(void)
{
	unlock();
	nanosleep(&(struct timespec){0, 50000}, NULL);
	lock();
}

static void stream_step(CUstream s)
{
	struct op *op = s->head;
	while (!ready(op))
		if (op->kind == OP_AWAIT_WORD)
			look_again();
		else
			progress_wait();
	unlock();
	op_run(s->ctx, op, op->function);
	lock();
	op_finish(op);
	s->head = op->next;
	if (!s->head)
		s->tail = &s->head;
	s->done++;
	free(op);
	pthread_cond_broadcast(&progress);
}

static void *stream_main(void *argument)
{
	CUstream s = argument;
	lock();
	while (s->live || s->head) {
		if (s->head)
			stream_step(s);
		else
			pthread_cond_wait(&s->wake, &driver_mutex);
	}
	s->running = false;
	unlock();
	return NULL;
}

/* A stream's thread must not receive the program's signals. */
static bool stream_start(CUstream s)
{
	if (s->running)
		return true;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_t thread;
	s->running = pthread_create(&thread, &attributes, stream_main, s) == 0;
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return s->running;
}

/* others collects the operations after which one of s must run: the legacy stream and blocking streams wait for each other. */
static size_t others(CUstream s, struct after *after)
{
	size_t n = 0;
	for (CUstream o = streams; o; o = o->next) {
		bool ordered = s->legacy ? blocking(o) : blocking(s) && o->legacy;
		if (o == s || o->ctx != s->ctx || !ordered || o->done == o->queued)
			continue;
		if (after)
			after[n] = (struct after){o, o->queued};
		n++;
	}
	return n;
}

bool stream_idle(CUstream s) { return s->done == s->queued && others(s, NULL) == 0; }

bool stream_done(CUstream s) { return s->done == s->queued && (!s->legacy || others(s, NULL) == 0); }

/* queue_op queues an operation whose references are already counted. */
CUresult queue_op(CUstream s, const struct op *op)
{
	if (captured(s, op))
		return CUDA_SUCCESS;
	size_t n = others(s, NULL);
	struct op *queued = malloc(sizeof *queued + n * sizeof *queued->after);
	if (!queued || !stream_start(s)) {
		free(queued);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	races_op(s, op);
	*queued = *op;
	queued->next = NULL;
	queued->function = entered;
	queued->afters = others(s, queued->after);
	*s->tail = queued;
	s->tail = &queued->next;
	s->queued++;
	pthread_cond_signal(&s->wake);
	return CUDA_SUCCESS;
}

/* An idle stream needs no thread for work that the caller waits for. */
CUresult queue_op_and_wait(CUstream s, const struct op *op)
{
	CUcontext ctx = s->ctx;
	if (captured(s, op))
		return CUDA_SUCCESS;
	if (stream_idle(s)) {
		races_op(s, op);
		unlock();
		op_run(ctx, op, entered);
		lock();
		op_finish(op);
		return ctx->sticky;
	}
	CUresult r = queue_op(s, op);
	if (r != CUDA_SUCCESS)
		return r;
	stream_drain(s);
	return ctx->sticky;
}

/* stream_drain waits for the work now queued in a stream; for the legacy stream, also for the streams that it is ordered with. */
void stream_drain(CUstream s)
{
	size_t n = s->legacy ? others(s, NULL) : 0;
	struct after after[n + 1];
	if (n)
		others(s, after);
	after[n] = (struct after){s, s->queued};
	for (size_t i = 0; i <= n; i++)
		while (!passed(&after[i]))
			progress_wait();
}

void context_drain(CUcontext ctx)
{
	for (CUstream s = streams; s; s = s->next)
		for (uint64_t last = s->queued; s->ctx == ctx && s->done < last;)
			progress_wait();
}

void device_drain(int device)
{
	for (CUstream s = streams; s; s = s->next)
		for (uint64_t last = s->queued; s->ctx->device == device && s->done < last;)
			progress_wait();
}

bool device_idle(int device)
{
	for (CUstream s = streams; s; s = s->next)
		if (s->ctx->device == device && s->done < s->queued)
			return false;
	return true;
}

void streams_close(CUcontext ctx)
{
	context_drain(ctx);
	for (CUstream s = streams; s; s = s->next)
		if (s->ctx == ctx && s->live)
			stream_close(s);
	ctx->legacy = NULL;
}

static _Thread_local char thread_mark; /* its address names the thread */

static CUstream thread_stream(CUcontext ctx)
{
	for (CUstream s = streams; s; s = s->next)
		if (s->live && s->ctx == ctx && s->owner == &thread_mark)
			return s;
	CUstream s = stream_open(ctx, CU_STREAM_DEFAULT, 0);
	if (s)
		s->owner = &thread_mark;
	return s;
}

CUresult stream_find(CUstream handle, CUstream *stream)
{
	CUcontext ctx = context_current();
	if (!handle || handle == CU_STREAM_LEGACY)
		*stream = ctx->legacy;
	else if (handle == CU_STREAM_PER_THREAD)
		*stream = thread_stream(ctx);
	else {
		for (*stream = streams; *stream; *stream = (*stream)->next)
			if (*stream == handle && handle->live)
				break;
		if (!*stream)
			return CUDA_ERROR_INVALID_HANDLE;
	}
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
