/* Records of the hooked calls. */
#define _GNU_SOURCE
#include "tell.h"

#include <string.h>

#include "caller.h"
#include "quiet.h"

#define MAX_FRAMES 56
#define MAX_DEVICES 64

enum { RELAXED = 2 }; /* CU_STREAM_CAPTURE_MODE_RELAXED */

_Atomic uint64_t gm_told;

DRIVER(cuCtxGetDevice, (int *device))
DRIVER(cuCtxGetCurrent, (void **context))
DRIVER(cuMemGetInfo_v2, (size_t *free, size_t *total))
DRIVER(cuThreadExchangeStreamCaptureMode, (int *mode))
DRIVER(cuDeviceGet, (int *device, int ordinal))
DRIVER(cuDeviceGetName, (char *name, int size, int device))
DRIVER(cuDeviceGetUuid_v2, (void *uuid, int device))
DRIVER(cuDeviceTotalMem_v2, (size_t *bytes, int device))

int gm_device(void)
{
	int device;
	return CALL(cuCtxGetDevice, &device) == CU_SUCCESS ? device : -1;
}

uint64_t gm_context(void)
{
	void *context;
	return CALL(cuCtxGetCurrent, &context) == CU_SUCCESS ? (uint64_t)context : 0;
}

/* A thread that captures a graph may make few calls, unless its capture mode is relaxed. */
int gm_memory(size_t *free, size_t *total)
{
	int mode = RELAXED;
	int exchanged = CALL(cuThreadExchangeStreamCaptureMode, &mode) == CU_SUCCESS;
	int known = CALL(cuMemGetInfo_v2, free, total) == CU_SUCCESS;
	if (exchanged)
		CALL(cuThreadExchangeStreamCaptureMode, &mode);
	return known;
}

/* introduce reports a device to the reader, once. */
static void introduce(int ordinal)
{
	static _Atomic uint8_t met[MAX_DEVICES];
	if (ordinal < 0 || ordinal >= MAX_DEVICES || atomic_load_explicit(&met[ordinal], memory_order_relaxed))
		return;
	if (atomic_exchange(&met[ordinal], 1))
		return;
	int device;
	size_t total = 0;
	char name[128] = "";
	uint64_t uuid[2] = {0, 0};
	if (CALL(cuDeviceGet, &device, ordinal) != CU_SUCCESS)
		return;
	CALL(cuDeviceGetName, name, sizeof name - 1, device);
	CALL(cuDeviceGetUuid_v2, uuid, device);
	CALL(cuDeviceTotalMem_v2, &total, device);
	struct gm_record r = {.kind = GM_DEVICE, .device = (int16_t)ordinal, .a = uuid[0], .b = uuid[1], .c = total};
	gm_push(&r, name, (unsigned)strlen(name));
}

void gm_tell(struct gm_record *r, void *caller)
{
	uintptr_t frames[MAX_FRAMES];
	introduce(r->device);
	r->caller = gm_caller(caller);
	atomic_fetch_add_explicit(&gm_told, 1, memory_order_relaxed);
	int n = gm_stack(frames, MAX_FRAMES);
	gm_push(r, frames, (unsigned)n * sizeof *frames);
}

/* refused records a request that failed for lack of memory. */
static void refused(enum gm_kind request, int device, size_t size, void *caller)
{
	size_t free = 0, total = 0;
	gm_memory(&free, &total);
	struct gm_record r = {.kind = GM_OOM, .device = (int16_t)device, .a = request, .b = size, .d = free};
	gm_tell(&r, caller);
}

int gm_came(int result, struct gm_record r, void *caller)
{
	int came = result == CU_SUCCESS && r.a;
	if (!came && result != CU_OUT_OF_MEMORY)
		return result;
	GM_QUIETLY;
	if (!gm_on())
		return result;
	if (r.device == GM_HERE)
		r.device = (int16_t)gm_device();
	if (came)
		gm_tell(&r, caller);
	else
		refused(r.kind, r.device, r.b, caller);
	return result;
}

int gm_came_here(int result, enum gm_kind kind, uint64_t at, uint64_t size, void *caller)
{
	GM_QUIETLY;
	struct gm_record r = {.kind = (uint8_t)kind, .device = GM_HERE, .a = at, .b = size, .c = gm_context()};
	return gm_came(result, r, caller);
}

int gm_going(enum gm_kind kind, uint64_t at, uint64_t size, uint64_t stream, void *caller)
{
	GM_QUIETLY;
	if (!at || !gm_on())
		return 0;
	struct gm_record r = {.kind = (uint8_t)kind, .device = -1, .a = at, .b = size, .c = stream};
	gm_tell(&r, caller);
	return 1;
}

int gm_gone(int result, int told, enum gm_kind failed, uint64_t at, uint64_t size, void *caller)
{
	if (result != CU_SUCCESS && told) {
		GM_QUIETLY;
		struct gm_record r = {.kind = (uint8_t)failed, .device = -1, .a = at, .b = size};
		gm_tell(&r, caller);
	}
	return result;
}
