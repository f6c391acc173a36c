/* Contexts: the primary one of each device, those that a program makes, and each thread's stack of them. */
#include "races.h"

#include <stdlib.h>

#define CONTEXT_BYTES (500 * MIB)
#define STACK_MAX 64
#define LIMIT_RUNTIME_SYNC_DEPTH 3 /* removed together with the old device runtime */
#define LIMITS ((int)(sizeof((CUcontext)0)->limits / sizeof(size_t)))

static CUcontext contexts; /* all that were ever made, so that a stale handle is recognised */
static CUcontext primaries[FAKE_DEVICES_MAX];
static int living[FAKE_DEVICES_MAX];

static _Thread_local struct {
	CUcontext contexts[STACK_MAX];
	int depth;
} stack;

CUcontext context_current(void) { return stack.depth ? stack.contexts[stack.depth - 1] : NULL; }

int current_device(void)
{
	CUcontext ctx = context_current();
	return ctx ? ctx->device : 0;
}

CUresult context_check(void)
{
	CUcontext ctx = context_current();
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	return ctx->alive ? ctx->sticky : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static bool context_known(CUcontext ctx)
{
	for (CUcontext c = contexts; c; c = c->next)
		if (c == ctx)
			return true;
	return false;
}

static CUcontext context_new(int device, bool primary)
{
	CUcontext ctx = calloc(1, sizeof *ctx);
	if (!ctx)
		return NULL;
	ctx->device = device;
	ctx->primary = primary;
	ctx->next = contexts;
	contexts = ctx;
	return ctx;
}

/* context_open makes ctx usable. The first context of a device also takes the driver's share of its memory. */
static CUresult context_open(CUcontext ctx)
{
	static const size_t defaults[] = {1024, 8650752, 8388608, 0, 2048, 64, 11796480, 232448};
	if (living[ctx->device] == 0) {
		CUresult r = device_take(ctx->device, FAKE_CONTEXT, CONTEXT_BYTES, CONTEXT_BYTES);
		if (r != CUDA_SUCCESS)
			return r;
	}
	living[ctx->device]++;
	for (int i = 0; i < LIMITS; i++)
		ctx->limits[i] = defaults[i];
	ctx->sticky = CUDA_SUCCESS;
	ctx->alive = true;
	ctx->legacy = stream_open(ctx, CU_STREAM_DEFAULT, 0);
	if (!ctx->legacy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->legacy->legacy = true;
	return CUDA_SUCCESS;
}

/* context_close waits for the context's work and frees what belongs to it. */
static void context_close(CUcontext ctx)
{
	ctx->alive = false;
	streams_close(ctx);
	blocks_release(ctx);
	arrays_release(ctx);
	modules_release(ctx);
	if (--living[ctx->device] > 0)
		return;
	pools_release_all(ctx->device);
	device_give(ctx->device, FAKE_CONTEXT, CONTEXT_BYTES, CONTEXT_BYTES);
}

static CUcontext primary(int device)
{
	if (!primaries[device])
		primaries[device] = context_new(device, true);
	return primaries[device];
}

static CUresult primary_retain(CUcontext *ctx, CUdevice device)
{
	CUcontext p = primary(device);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!p->alive) {
		CUresult r = context_open(p);
		if (r != CUDA_SUCCESS)
			return r;
	}
	p->retained++;
	*ctx = p;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
	ENTER(NEED_INIT);
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	lock();
	CUresult r = primary_retain(ctx, device);
	unlock();
	return r;
}

static CUresult primary_release(CUdevice device)
{
	CUcontext p = primaries[device];
	if (!p || p->retained == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--p->retained == 0)
		context_close(p);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	ENTER(NEED_INIT);
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	lock();
	CUresult r = primary_release(device);
	unlock();
	return r;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	ENTER(NEED_INIT);
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	lock();
	CUcontext p = primaries[device];
	if (p && p->alive) {
		p->retained = 0;
		context_close(p);
	}
	unlock();
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	ENTER(NEED_INIT);
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	CUcontext p = primaries[device];
	*flags = p ? p->flags : 0;
	*active = p && p->alive;
	unlock();
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	ENTER(NEED_INIT);
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	lock();
	CUcontext p = primary(device);
	if (p)
		p->flags = flags;
	unlock();
	return p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult push(CUcontext ctx)
{
	if (stack.depth == STACK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	stack.contexts[stack.depth++] = ctx;
	return CUDA_SUCCESS;
}

static CUresult context_create(CUcontext *out, unsigned flags, CUdevice device)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	lock();
	CUcontext ctx = context_new(device, false);
	CUresult r = ctx ? context_open(ctx) : CUDA_ERROR_OUT_OF_MEMORY;
	unlock();
	if (r != CUDA_SUCCESS)
		return r;
	ctx->flags = flags;
	*out = ctx;
	return push(ctx);
}

CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned flags, CUdevice device)
{
	ENTER(NEED_INIT);
	return context_create(ctx, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *ctx, void *affinity, int n, unsigned flags, CUdevice device)
{
	ENTER(NEED_INIT);
	if (affinity || n)
		return CUDA_ERROR_NOT_SUPPORTED;
	return context_create(ctx, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *ctx, void *params, unsigned flags, CUdevice device)
{
	ENTER(NEED_INIT);
	if (params)
		return CUDA_ERROR_NOT_SUPPORTED;
	return context_create(ctx, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	ENTER(NEED_INIT);
	lock();
	bool ok = context_known(ctx) && !ctx->primary && ctx->alive;
	if (ok)
		context_close(ctx);
	unlock();
	if (!ok)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context_current() == ctx)
		stack.depth--;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	ENTER(NEED_INIT);
	lock();
	bool known = context_known(ctx);
	unlock();
	return known ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	ENTER(NEED_INIT);
	if (!stack.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	CUcontext top = stack.contexts[--stack.depth];
	if (ctx)
		*ctx = top;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	ENTER(NEED_INIT);
	lock();
	bool known = !ctx || context_known(ctx);
	unlock();
	if (!known)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack.depth)
		stack.depth--;
	return ctx ? push(ctx) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	ENTER(NEED_INIT);
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = context_current();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	ENTER(NEED_CONTEXT);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = context_current()->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	ENTER(NEED_CONTEXT);
	CUcontext ctx = context_current();
	lock();
	context_drain(ctx);
	races_sync_context(ctx);
	pools_sync(ctx->device);
	unlock();
	return ctx->sticky;
}

CUresult cuCtxSetLimit(int limit, size_t value)
{
	ENTER(NEED_CONTEXT);
	if (limit < 0 || limit >= LIMITS)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit == LIMIT_RUNTIME_SYNC_DEPTH)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	lock();
	context_current()->limits[limit] = value;
	unlock();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, int limit)
{
	ENTER(NEED_CONTEXT);
	if (!value || limit < 0 || limit >= LIMITS)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit == LIMIT_RUNTIME_SYNC_DEPTH)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	lock();
	*value = context_current()->limits[limit];
	unlock();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags)
{
	ENTER(NEED_CONTEXT);
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	*flags = context_current()->flags;
	unlock();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	ENTER(NEED_CONTEXT);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned *version)
{
	ENTER(NEED_INIT);
	lock();
	bool known = !ctx || context_known(ctx);
	unlock();
	if (!known || !version || (!ctx && !context_current()))
		return CUDA_ERROR_INVALID_CONTEXT;
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	ENTER(NEED_CONTEXT);
	lock();
	bool ok = context_known(peer) && peer->alive && peer->device != context_current()->device;
	unlock();
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
