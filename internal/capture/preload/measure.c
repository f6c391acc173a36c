#include "measure.h"

#include "quiet.h"

struct gm_measure gm_before(void)
{
	GM_QUIETLY;
	struct gm_measure m = {.told = atomic_load(&gm_told)};
	size_t total;
	m.known = gm_context() && gm_on() && gm_memory(&m.free, &total);
	return m;
}

int gm_after(struct gm_measure m, int result, enum gm_growth what, void *caller)
{
	GM_QUIETLY;
	size_t free, total;
	if (!m.known || result != CU_SUCCESS || !gm_memory(&free, &total))
		return result;
	if (free >= m.free || atomic_load(&gm_told) != m.told)
		return result;
	struct gm_record r = {
		.kind = GM_GREW, .device = (int16_t)gm_device(), .b = m.free - free, .c = gm_context(), .d = (uint64_t)what};
	gm_tell(&r, caller);
	return result;
}
