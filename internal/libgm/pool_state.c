/* The live requests of a private pool, and pools that are held without being begun. */
#include "libgm.h"

#include "_cgo_export.h"

static bool refused(void)
{
	if (forked())
		gm_set_error(GM_FORKED, sizeof GM_FORKED - 1);
	return forked();
}

/* usable says whether a device has pools, and why not. */
static bool usable(int device)
{
	static const char none[] = "The device has no such memory pool: it was not used.";
	if (refused())
		return false;
	if (!gm_device_open(device))
		gm_set_error(none, sizeof none - 1);
	return gm_device_open(device);
}

int64_t gm_pool_live(int device, uint64_t id0, uint64_t id1, struct gm_live *blocks, size_t room)
{
	if (!usable(device))
		return -1;
	gm_lock(device);
	int64_t n = go_pool_live(device, id0, id1, blocks, room);
	gm_unlock(device);
	return n;
}

int gm_pool_restore(int device, uint64_t id0, uint64_t id1, const struct gm_live *blocks, size_t n)
{
	if (!usable(device))
		return -1;
	gm_lock(device);
	bool done = go_pool_restore(device, id0, id1, (struct gm_live *)blocks, n);
	gm_unlock(device);
	return done ? 0 : -1;
}

int gm_retain_pool(int device, uint64_t id0, uint64_t id1)
{
	static const char none[] = "No memory pool can be made: there is no such device.";
	if (refused())
		return -1;
	if (!gm_device_valid(device)) {
		gm_set_error(none, sizeof none - 1);
		return -1;
	}
	if (!gm_open(device))
		return -1;
	gm_lock(device);
	go_retain_pool(device, id0, id1);
	gm_unlock(device);
	return 0;
}

int gm_pool_uses(int device, uint64_t id0, uint64_t id1)
{
	if (!usable(device))
		return -1;
	gm_lock(device);
	int n = go_pool_uses(device, id0, id1);
	gm_unlock(device);
	return n;
}

void gm_reset_pool(int device, uint64_t id0, uint64_t id1)
{
	if (!usable(device))
		return;
	gm_lock(device);
	go_empty_pool(device, id0, id1);
	gm_unlock(device);
}

void gm_pool_use_on_oom(int device, uint64_t id0, uint64_t id1, int on)
{
	if (!usable(device))
		return;
	gm_lock(device);
	go_pool_use_on_oom(device, id0, id1, on != 0);
	gm_unlock(device);
}
