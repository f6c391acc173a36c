/* Stores of objects: Go's functions, but in a forked child. Go has the locks. */
#include "libgm.h"

#include "_cgo_export.h"

/* GATED makes a call of Go once this process is awake. From then on the thread passes the gate: it must not wait there with the lock of the
 * store, which others need to get their room. */
#define GATED(result, call)                 \
	do {                                \
		bool gate = gm_find_gate(); \
		if (gate)                   \
			gm_enter_gate();    \
		result = call;              \
		if (gate)                   \
			gm_pass_gate(false);\
	} while (0)

/* What the program's function launches waits for the process to wake, as all that it launches. */
void gm_tell_evicted(gm_evicted *f, void *user, int64_t object)
{
	bool gate = gm_find_gate();
	if (gate)
		gm_pass_gate(false);
	f(user, object);
	if (gate)
		gm_pass_gate(true);
}

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
	struct go_store_create_return made;
	GATED(made, go_store_create(store, size, (uintptr_t)stream));
	*address = (void *)(uintptr_t)made.r1;
	return made.r0;
}

void *gm_store_get(int64_t store, int64_t object, int write, void *stream)
{
	uint64_t p = 0;
	if (!gm_in_child())
		GATED(p, go_store_get(store, object, write, (uintptr_t)stream));
	return (void *)(uintptr_t)p;
}

int gm_store_put(int64_t store, int64_t object, int64_t next, void *stream)
{
	int rc = -1;
	if (!gm_in_child())
		GATED(rc, go_store_put(store, object, next, (uintptr_t)stream));
	return rc;
}

int gm_store_free(int64_t store, int64_t object, void *stream)
{
	int rc = -1;
	if (!gm_in_child())
		GATED(rc, go_store_free(store, object, (uintptr_t)stream));
	return rc;
}

int gm_store_get_stats(int64_t store, struct gm_store_stats *stats)
{
	return gm_in_child() || gm_refused(!stats, "There is nowhere to put the statistics.") ? -1 : go_store_get_stats(store, stats);
}

int gm_store_close(int64_t store)
{
	int rc = -1;
	if (!gm_in_child())
		GATED(rc, go_store_close(store));
	return rc;
}
