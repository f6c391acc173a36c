/* Who is told of each range of addresses that gets or loses memory. */
#include "libgm.h"

static gm_segment_observer *_Atomic observer;

/* Whoever holds the lock of a device may be calling the observer before. */
void gm_observe_segments(gm_segment_observer *f)
{
	atomic_store(&observer, f);
	for (int device = 0; !forked() && device < GM_DEVICES; device++) {
		if (!gm_device_open(device))
			continue;
		gm_lock(device);
		gm_unlock(device);
	}
}

void gm_tell_segment(int device, bool mapped, uint64_t address, uint64_t size, uint64_t stream)
{
	gm_segment_observer *f = atomic_load(&observer);
	if (f)
		f(device, mapped, address, size, stream);
}
