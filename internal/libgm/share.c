/* Memory of this process in others, and of others here. */
#include "libgm.h"

#include <string.h>
#include <unistd.h>

#include "_cgo_export.h"

_Atomic int gm_share_socket = -1;

/* A child would keep the socket open, at which nobody would answer. */
static void in_child(void)
{
	int fd = atomic_exchange(&gm_share_socket, -1);
	if (fd >= 0)
		close(fd);
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static void refuse(const char *text) { gm_set_error(text, strlen(text)); }

size_t gm_share(void *p, char *handle, size_t room)
{
	if (forked()) {
		refuse(GM_FORKED);
		return 0;
	}
	for (int device = 0; p && device < GM_DEVICES; device++) {
		if (!gm_device_open(device))
			continue;
		size_t n = 0;
		gm_lock(device);
		bool known = go_knows_within(device, (uint64_t)(uintptr_t)p);
		if (known)
			n = go_share(device, (uint64_t)(uintptr_t)p, handle, room);
		gm_unlock(device);
		if (known)
			return n;
	}
	refuse("The memory cannot be shared: it is not in a live request of gm_malloc.");
	return 0;
}

void *gm_open_shared(const char *handle, size_t n, int device)
{
	if (forked()) {
		refuse(GM_FORKED);
		return NULL;
	}
	if (!handle || !gm_device_valid(device)) {
		refuse("Shared memory cannot be opened: there is no handle, or no such device.");
		return NULL;
	}
	return gm_open(device) ? (void *)(uintptr_t)go_open_shared(device, (char *)handle, n) : NULL;
}

void gm_close_shared(void *p)
{
	if (p && !forked() && atomic_load(&gm_opened))
		go_close_shared((uint64_t)(uintptr_t)p);
}
