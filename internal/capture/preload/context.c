/* Contexts. */
#include "measure.h"
#include "quiet.h"

DRIVER(cuCtxPushCurrent_v2, (void *context))
DRIVER(cuCtxPopCurrent_v2, (void **context))
DRIVER(cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active))

/* start is the state before a context is made. */
struct start {
	uint64_t time;
	size_t used; /* bytes of the device in use; 0 if there was no context to ask in */
};

static struct start starting(int device)
{
	GM_QUIETLY;
	struct start s = {.time = gm_now()};
	size_t free, total;
	if (gm_device() == device && gm_memory(&free, &total))
		s.used = total - free;
	return s;
}

/* made records a new context. If there was no context before, the reader gets the bytes used before from NVML. */
static int made(int result, enum gm_kind kind, void **context, int device, struct start start, void *caller)
{
	GM_QUIETLY;
	size_t free, total;
	void *popped;
	if (result != CU_SUCCESS || !gm_on() || CALL(cuCtxPushCurrent_v2, *context) != CU_SUCCESS)
		return result;
	int known = gm_memory(&free, &total);
	CALL(cuCtxPopCurrent_v2, &popped);
	struct gm_record r = {.kind = (uint8_t)kind, .device = (int16_t)device, .a = (uint64_t)*context, .c = start.used, .d = start.time};
	if (known)
		r.b = total - free;
	gm_tell(&r, caller);
	return result;
}

static int active(int device)
{
	GM_QUIETLY;
	unsigned flags;
	int on = 0;
	return CALL(cuDevicePrimaryCtxGetState, device, &flags, &on) == CU_SUCCESS && on;
}

/* unmade records that the primary context of a device is gone. */
static int unmade(int result, int was_active, int device, void *caller)
{
	GM_QUIETLY;
	if (result != CU_SUCCESS || !was_active || active(device) || !gm_on())
		return result;
	struct gm_record r = {.kind = GM_CONTEXT_GONE, .device = (int16_t)device};
	gm_tell(&r, caller);
	return result;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	struct start start = starting(device);
	int was_active = active(device);
	int result = REAL(cuDevicePrimaryCtxRetain, context, device);
	return was_active ? result : made(result, GM_PRIMARY, context, device, start, CALLER);
}

int cuDevicePrimaryCtxRelease(int device)
{
	int was_active = active(device);
	return unmade(REAL(cuDevicePrimaryCtxRelease, device), was_active, device, CALLER);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	int was_active = active(device);
	return unmade(REAL(cuDevicePrimaryCtxRelease_v2, device), was_active, device, CALLER);
}

int cuDevicePrimaryCtxReset(int device)
{
	int was_active = active(device);
	return unmade(REAL(cuDevicePrimaryCtxReset, device), was_active, device, CALLER);
}

int cuDevicePrimaryCtxReset_v2(int device)
{
	int was_active = active(device);
	return unmade(REAL(cuDevicePrimaryCtxReset_v2, device), was_active, device, CALLER);
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
	struct start start = starting(device);
	return made(REAL(cuCtxCreate_v2, context, flags, device), GM_CONTEXT, context, device, start, CALLER);
}

int cuCtxCreate_v3(void **context, void *affinity, int count, unsigned flags, int device)
{
	struct start start = starting(device);
	return made(REAL(cuCtxCreate_v3, context, affinity, count, flags, device), GM_CONTEXT, context, device, start, CALLER);
}

int cuCtxCreate_v4(void **context, void *params, unsigned flags, int device)
{
	struct start start = starting(device);
	return made(REAL(cuCtxCreate_v4, context, params, flags, device), GM_CONTEXT, context, device, start, CALLER);
}

int cuCtxDestroy_v2(void *context)
{
	int result = REAL(cuCtxDestroy_v2, context);
	if (result == CU_SUCCESS)
		gm_going(GM_CONTEXT_GONE, (uint64_t)context, 0, 0, CALLER);
	return result;
}

int cuCtxSetLimit(int limit, size_t value)
{
	struct gm_measure m = gm_before();
	return gm_after(m, REAL(cuCtxSetLimit, limit, value), GM_LIMIT, CALLER);
}
