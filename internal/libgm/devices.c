/* The lock and the queue of freed addresses of each device. */
#define _GNU_SOURCE
#include "libgm.h"

#include <time.h>

struct gm_device gm_devices[GM_DEVICES];
_Atomic uint32_t gm_opened;
static _Atomic uint64_t no_version;

__attribute__((constructor)) static void prepare(void)
{
	for (int i = 0; i < GM_DEVICES; i++) {
		struct gm_device *d = &gm_devices[i];
		d->version = &no_version;
		for (uint64_t n = 0; n < GM_FREES; n++)
			atomic_init(&d->freed[n].turn, n);
	}
}

bool gm_device_valid(int device) { return device >= 0 && device < GM_DEVICES; }

bool gm_device_open(int device) { return gm_device_valid(device) && atomic_load(&gm_opened) >> device & 1; }

void gm_set_open(int device, uint64_t *version, void *account)
{
	gm_devices[device].version = (_Atomic uint64_t *)version;
	gm_devices[device].account = account;
	atomic_fetch_or(&gm_opened, UINT32_C(1) << device);
}

void gm_lock(int device) { gm_lock_take(&gm_devices[device].lock); }

bool gm_lock_at_exit(int device)
{
	for (int i = 0; i < 1000; i++) {
		if (gm_try_lock(&gm_devices[device].lock))
			return true;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return false;
}

void gm_unlock(int device) { gm_lock_give(&gm_devices[device].lock); }

/* gm_push returns false when the queue is full. What is pushed may be used by other streams, whose events Go is to record soon: so Go serves
 * the next large request. */
bool gm_push(int device, uint64_t address)
{
	struct gm_device *d = &gm_devices[device];
	uint64_t n = atomic_load_explicit(&d->pushed, memory_order_relaxed);
	for (;;) {
		struct gm_freed *f = &d->freed[n % GM_FREES];
		int64_t ahead = (int64_t)(atomic_load_explicit(&f->turn, memory_order_acquire) - n);
		if (ahead < 0)
			return false;
		if (ahead > 0) {
			n = atomic_load_explicit(&d->pushed, memory_order_relaxed);
			continue;
		}
		if (atomic_compare_exchange_weak_explicit(&d->pushed, &n, n + 1, memory_order_relaxed, memory_order_relaxed)) {
			f->address = address;
			atomic_store_explicit(&f->turn, n + 1, memory_order_release);
			if (atomic_load_explicit(&d->keeps, memory_order_relaxed))
				atomic_store_explicit(&d->keeps, 0, memory_order_relaxed);
			return true;
		}
	}
}
