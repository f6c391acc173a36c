/* Memory by keys: Go's functions, but in a forked child. Go has the lock: a call may wait for another process. */
#include "libgm.h"

#include <string.h>

#include "_cgo_export.h"

static bool refused(bool wrong, const char *text)
{
	if (wrong)
		gm_set_error(text, strlen(text));
	return wrong;
}

static bool in_child(void) { return refused(forked(), GM_FORKED); }

int gm_key_open(int device, const char *key, struct gm_key *opened)
{
	if (in_child() || refused(!gm_device_valid(device), "The device is not valid.") ||
	    refused(!key || !opened, "There is no key."))
		return -1;
	struct go_key_open_return found = go_key_open(device, (char *)key);
	*opened = (struct gm_key){found.r0, (void *)(uintptr_t)found.r1, found.r2};
	return found.r0 ? 0 : -1;
}

void *gm_key_make(int64_t id, size_t size) { return in_child() ? NULL : (void *)(uintptr_t)go_key_make(id, size); }

int gm_key_write(int64_t id, size_t offset, const void *from, size_t n)
{
	return in_child() ? -1 : go_key_write(id, offset, (void *)from, n);
}

int gm_key_freeze(int64_t id) { return in_child() ? -1 : go_key_freeze(id); }
int gm_key_close(int64_t id) { return in_child() ? -1 : go_key_close(id); }
