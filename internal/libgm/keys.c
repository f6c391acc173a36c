/* Memory by keys: Go's functions, but in a forked child. Go has the lock: a call may wait for another process. */
#include "libgm.h"

#include <unistd.h>

#include "_cgo_export.h"

/* Descriptors of keys that are open, plus 1. A forked child would keep the memory behind its parent's end. */
enum { KEYS = 512 };
static _Atomic int descriptors[KEYS];

void gm_change_descriptor(int from, int to)
{
	for (int i = 0; i < KEYS; i++) {
		int expected = from + 1;
		if (atomic_compare_exchange_strong(&descriptors[i], &expected, to + 1))
			return;
	}
}

static void in_child(void)
{
	for (int i = 0; i < KEYS; i++) {
		int fd = atomic_exchange(&descriptors[i], 0) - 1;
		if (fd >= 0)
			close(fd);
	}
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

int gm_key_open(int device, const char *key, struct gm_key *opened)
{
	if (gm_in_child() || gm_refused(!gm_device_valid(device), "The device is not valid.") ||
	    gm_refused(!key || !opened, "There is no key."))
		return -1;
	struct go_key_open_return found = go_key_open(device, (char *)key);
	*opened = (struct gm_key){found.r0, (void *)(uintptr_t)found.r1, found.r2};
	return found.r0 ? 0 : -1;
}

/* As a job of the memory server, this process asks that for room where there is none. */
void *gm_key_make(int64_t id, size_t size)
{
	struct go_key_make_return made;
	if (gm_in_child())
		return NULL;
	do
		made = go_key_make(id, size);
	while (!made.r0 && made.r1 >= 0 && gm_ask_room(made.r1, size));
	return (void *)(uintptr_t)made.r0;
}

int gm_key_write(int64_t id, size_t offset, const void *from, size_t n)
{
	return gm_in_child() ? -1 : go_key_write(id, offset, (void *)from, n);
}

int gm_key_freeze(int64_t id) { return gm_in_child() ? -1 : go_key_freeze(id); }
int gm_key_close(int64_t id) { return gm_in_child() ? -1 : go_key_close(id); }
