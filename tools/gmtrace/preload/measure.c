#include "measure.h"

enum { RELAXED = 2 };

DRIVER(cuThreadExchangeStreamCaptureMode, (int *mode))

/* memory asks for the bytes that are free. A thread that captures a graph may not ask for much; relaxed, it may. */
static int memory(size_t *free)
{
	size_t total;
	int mode = RELAXED;
	int exchanged = CALL(cuThreadExchangeStreamCaptureMode, &mode) == CU_SUCCESS;
	int known = gm_memory(free, &total);
	if (exchanged)
		CALL(cuThreadExchangeStreamCaptureMode, &mode);
	return known;
}

struct gm_measure gm_before(void)
{
	struct gm_measure m = {.told = atomic_load(&gm_told)};
	m.known = gm_context() && gm_on() && memory(&m.free);
	return m;
}

int gm_after(struct gm_measure m, int result, enum gm_growth what, void *caller)
{
	size_t free;
	if (!m.known || result != CU_SUCCESS || !memory(&free))
		return result;
	if (free >= m.free || atomic_load(&gm_told) != m.told)
		return result;
	struct gm_record r = {
		.kind = GM_GREW, .device = (int16_t)gm_device(), .b = m.free - free, .c = gm_context(), .d = (uint64_t)what};
	gm_tell(&r, caller);
	return result;
}
