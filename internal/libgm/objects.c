/* Stores of objects: Go's functions, but in a forked child. Go has the locks. */
#include "libgm.h"

#include "_cgo_export.h"

void gm_tell_evicted(gm_evicted *f, void *user, int64_t object) { f(user, object); }

int64_t gm_store_open(int device, const struct gm_store_options *options)
{
	struct gm_store_options none = {0};
	if (gm_in_child() || gm_refused(!gm_device_valid(device), "The device is not valid."))
		return 0;
	return go_store_open(device, options ? (struct gm_store_options *)options : &none);
}

int64_t gm_store_create(int64_t store, size_t size, void *stream, void **address)
{
	if (gm_in_child() || gm_refused(!address, "There is nowhere to say where the object is."))
		return 0;
	struct go_store_create_return made = go_store_create(store, size, (uintptr_t)stream);
	*address = (void *)(uintptr_t)made.r1;
	return made.r0;
}

void *gm_store_get(int64_t store, int64_t object, int write, void *stream)
{
	return gm_in_child() ? NULL : (void *)(uintptr_t)go_store_get(store, object, write, (uintptr_t)stream);
}

int gm_store_put(int64_t store, int64_t object, int64_t next, void *stream)
{
	return gm_in_child() ? -1 : go_store_put(store, object, next, (uintptr_t)stream);
}

int gm_store_free(int64_t store, int64_t object, void *stream)
{
	return gm_in_child() ? -1 : go_store_free(store, object, (uintptr_t)stream);
}

int gm_store_get_stats(int64_t store, struct gm_store_stats *stats)
{
	return gm_in_child() || gm_refused(!stats, "There is nowhere to put the statistics.") ? -1 : go_store_get_stats(store, stats);
}

int gm_store_close(int64_t store) { return gm_in_child() ? -1 : go_store_close(store); }
