/* Memory by keys: Go's functions, but in a forked child. Go has the lock: a call may wait for another process. */
#include "libgm.h"

#include "_cgo_export.h"

int gm_key_open(int device, const char *key, struct gm_key *opened)
{
	if (gm_in_child() || gm_refused(!gm_device_valid(device), "The device is not valid.") ||
	    gm_refused(!key || !opened, "There is no key."))
		return -1;
	struct go_key_open_return found = go_key_open(device, (char *)key);
	*opened = (struct gm_key){found.r0, (void *)(uintptr_t)found.r1, found.r2};
	return found.r0 ? 0 : -1;
}

void *gm_key_make(int64_t id, size_t size) { return gm_in_child() ? NULL : (void *)(uintptr_t)go_key_make(id, size); }

int gm_key_write(int64_t id, size_t offset, const void *from, size_t n)
{
	return gm_in_child() ? -1 : go_key_write(id, offset, (void *)from, n);
}

int gm_key_freeze(int64_t id) { return gm_in_child() ? -1 : go_key_freeze(id); }
int gm_key_close(int64_t id) { return gm_in_child() ? -1 : go_key_close(id); }
