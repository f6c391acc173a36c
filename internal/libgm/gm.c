/* The exported functions: what can be answered in C is, the rest is Go's, with the lock of the device held. */
#define _GNU_SOURCE
#include "libgm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "_cgo_export.h"

static void *refuse(const char *text)
{
	gm_set_error(text, strlen(text));
	return NULL;
}

bool gm_open(int device) { return gm_device_open(device) || go_open(device); }


/* How often room is made for a request before memory is looked for that takes time to get: caches are emptied, and streams waited for. */
enum { HASTY = 3 };

/* from_go enters Go: for a segment from which a small request is served, or for the request. It is full if there is no memory, and the text for
 * that is Go's to write (go_failed) unless room is made. */
static void *from_go(int device, size_t size, uint64_t stream, int32_t pool, bool plain, bool hasty, bool *full)
{
	bool small = plain && size <= GM_SMALL_SIZE;
	void *p = NULL;
	gm_lock(device);
	while (small && !p && (small = gm_small_room(device, stream)) && !(p = gm_small_get(device, size, stream)))
		small = go_grow(device, stream);
	if (!p) {
		bool hold = gm_held_room(device);
		struct go_malloc_return r = go_malloc(device, (int64_t)size, stream, pool, hold, hasty);
		if (r.r1)
			gm_held_add(device, r.r0, size, r.r1, stream, r.r2, r.r3);
		p = (void *)(uintptr_t)r.r0;
		*full = r.r4;
	}
	gm_unlock(device);
	return p;
}

void *gm_try_malloc(size_t size, int device, void *stream)
{
	if (!size)
		return NULL;
	if (forked())
		return refuse("CUDA out of memory. " GM_FORKED);
	if (!gm_device_valid(device) || size > INT64_MAX)
		return refuse("CUDA out of memory. The device or the size of the request is not valid.");
	if (!gm_open(device))
		return NULL;
	int32_t pool = gm_pool_of(device, stream);
	bool plain = !pool && stream != PER_THREAD;
	if (stream == LEGACY)
		stream = NULL;
	void *p = size > GM_SMALL_SIZE && plain ? gm_take_lodging(device, size, stream) : NULL;
	if (plain && !p)
		p = (size <= GM_SMALL_SIZE ? gm_small_get : gm_warm_get)(device, size, (uint64_t)(uintptr_t)stream);
	bool full = false, hasty = gm_relieved(), last = !hasty;
	int asked = 0;
	while (!p && !(p = from_go(device, size, (uint64_t)(uintptr_t)stream, pool, plain, hasty, &full)) && full && !last) {
		last = !gm_make_room(device, size, stream);
		hasty = !last && ++asked < HASTY;
	}
	while (!p && full && gm_ask_room(device, size)) /* caches are empty, and the program can free no more */
		p = from_go(device, size, (uint64_t)(uintptr_t)stream, pool, plain, false, &full);
	while (!p && full && !pool && gm_last_resort(device, size, stream, &p) && !p)
		p = from_go(device, size, (uint64_t)(uintptr_t)stream, pool, plain, false, &full);
	if (!p && full) {
		gm_lock(device);
		go_failed(device, (int64_t)size);
		gm_unlock(device);
	}
	return p;
}

void *gm_malloc(ssize_t size, int device, void *stream)
{
	void *p = gm_try_malloc((size_t)size, device, stream);
	if (!p && size)
		gm_throw_oom(gm_error());
	return p;
}

void gm_free(void *p, ssize_t size, int device, void *stream)
{
	(void)size;
	(void)stream;
	if (!p || forked() || gm_give_back(p) || !gm_device_open(device))
		return;
	uint64_t address = (uint64_t)(uintptr_t)p;
	enum gm_fate fate = gm_held_put(device, address);
	while (fate != GM_FREED && !gm_push(device, fate == GM_COUNTED ? address | GM_COUNTED_BIT : address)) {
		gm_lock(device);
		go_drain(device);
		gm_unlock(device);
	}
}

void gm_record_stream(void *p, void *stream)
{
	if (gm_borrower_too(p, stream))
		return;
	for (int device = 0; p && !forked() && device < GM_DEVICES; device++) {
		if (!gm_device_open(device))
			continue;
		gm_lock(device);
		bool known = go_record_stream(device, (uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)stream, atomic_load(&gm_opened));
		gm_unlock(device);
		if (known)
			return;
	}
}

void *gm_base_alloc(void *p, size_t *size)
{
	uint64_t bytes = 0, base = gm_borrowed_from(p, &bytes);
	for (int device = 0; p && !base && !forked() && device < GM_DEVICES; device++) {
		if (!gm_device_open(device))
			continue;
		gm_lock(device);
		base = go_base_alloc(device, (uint64_t)(uintptr_t)p, &bytes);
		gm_unlock(device);
	}
	if (size)
		*size = bytes;
	return (void *)(uintptr_t)base;
}

int gm_device_of(void *p)
{
	int borrower = gm_swap_borrowed(p);
	if (borrower >= 0)
		return borrower;
	for (int device = 0; p && !forked() && device < GM_DEVICES; device++) {
		if (!gm_device_open(device))
			continue;
		struct gm_view view;
		if (gm_held_find(device, (uint64_t)(uintptr_t)p, false, &view))
			return device;
		gm_lock(device);
		bool known = go_knows(device, (uint64_t)(uintptr_t)p);
		gm_unlock(device);
		if (known)
			return device;
	}
	return -1;
}

/* gm_init is called before a device is chosen, maybe in a parent that only forks: there is nothing to do yet. */
void gm_init(int devices) { (void)devices; }

void gm_reset(void)
{
	for (int device = 0; !forked() && device < GM_DEVICES; device++) {
		if (!gm_device_open(device))
			continue;
		gm_lock(device);
		go_empty(device);
		gm_unlock(device);
	}
	if (!forked() && atomic_load(&gm_opened))
		go_settle_shared();
}

void gm_memory_fraction(double fraction, int device)
{
	if (forked() || !gm_device_valid(device) || !gm_open(device))
		return;
	gm_lock(device);
	go_memory_fraction(device, fraction);
	gm_unlock(device);
}

size_t gm_last_error(char *text, size_t n)
{
	return (size_t)snprintf(text, n, "%s", gm_error());
}

int gm_get_stats(int device, struct gm_stats *stats)
{
	if (forked() || !gm_device_open(device))
		return -1;
	gm_lock(device);
	go_get_stats(device, stats);
	gm_unlock(device);
	return 0;
}

static void reset_stats(int device, bool peaks)
{
	if (forked() || !gm_device_open(device))
		return;
	gm_lock(device);
	go_reset_stats(device, peaks);
	gm_unlock(device);
}

void gm_reset_peak_stats(int device) { reset_stats(device, true); }
void gm_reset_accumulated_stats(int device) { reset_stats(device, false); }

void gm_mark_peak(int device)
{
	if (forked() || !gm_device_open(device))
		return;
	gm_lock(device);
	go_mark_peak(device);
	gm_unlock(device);
}

int64_t gm_marked_peak(int device)
{
	if (forked() || !gm_device_open(device))
		return 0;
	gm_account_lock(device);
	int64_t most = gm_devices[device].marked;
	gm_account_unlock(device);
	return most;
}

int gm_iteration(int device, int begins)
{
	if (forked() || !gm_device_open(device))
		return -1;
	gm_lock(device);
	int state = go_iteration(device, begins != 0);
	gm_unlock(device);
	return state;
}

size_t gm_snapshot(char *text, size_t n)
{
	if (forked())
		return (size_t)snprintf(text, n, "[]");
	return go_snapshot(text, n);
}

int64_t gm_blocks(int device, struct gm_block *blocks, size_t room)
{
	if (forked() || !gm_device_open(device))
		return -1;
	gm_lock(device);
	int64_t n = go_blocks(device, blocks, room);
	gm_unlock(device);
	return n;
}

int gm_find(int device, void *p, struct gm_block *block)
{
	if (!p || forked() || !gm_device_open(device))
		return -1;
	uint64_t bytes;
	if (gm_borrowed_from(p, &bytes) == (uint64_t)(uintptr_t)p) {
		*block = (struct gm_block){.address = (uint64_t)(uintptr_t)p, .segment = (uint64_t)(uintptr_t)p, .size = (int64_t)bytes,
					   .requested = (int64_t)bytes, .state = GM_USED};
		return 0;
	}
	gm_lock(device);
	bool known = go_find(device, (uint64_t)(uintptr_t)p, block);
	gm_unlock(device);
	return known ? 0 : -1;
}

const char *gm_library(void)
{
	static const char here;
	Dl_info info;
	return dladdr(&here, &info) && info.dli_fname ? info.dli_fname : "";
}

const char *gm_version(void) { return GM_VERSION; }

/* Go works until the process ends, but its own deferred functions are not run. */
__attribute__((destructor)) static void finish(void)
{
	if (!forked() && atomic_load(&gm_opened))
		go_finish();
}
