/* What the account of a device counts. The page of statistics shows it. Both halves change it, each change with its lock held (lock.c), for
 * a few instructions: never during a call of the driver. The version is odd meanwhile, for those who read the page without the lock. */
#include "libgm.h"

void gm_account_wait(int device) { gm_lock_wait(&gm_devices[device].changing); }

void gm_account_wake(int device) { gm_lock_wake(&gm_devices[device].changing); }

static void add(struct gm_counter *c, int64_t n)
{
	c->current += n;
	c->allocated += n;
	if (c->current > c->peak)
		c->peak = c->current;
}

static void subtract(struct gm_counter *c, int64_t n)
{
	c->current -= n;
	c->freed += n;
}

static int kind_of(int64_t taken) { return taken <= (int64_t)GM_SMALL_SIZE ? GM_SMALL : GM_LARGE; }

static void enter(struct gm_stats *a, int kind, int64_t taken, int64_t requested)
{
	add(&a->allocation[kind], 1);
	add(&a->allocated_bytes[kind], taken);
	add(&a->requested_bytes[kind], requested);
	add(&a->active_bytes[kind], taken);
}

static void leave(struct gm_stats *a, int kind, int64_t taken, int64_t requested)
{
	subtract(&a->allocation[kind], 1);
	subtract(&a->allocated_bytes[kind], taken);
	subtract(&a->requested_bytes[kind], requested);
	subtract(&a->active_bytes[kind], taken);
}

void gm_account_enter(struct gm_device *d, int64_t taken, int64_t requested)
{
	struct gm_stats *a = d->account;
	enter(a, GM_ALL, taken, requested);
	enter(a, kind_of(taken), taken, requested);
	if (a->allocated_bytes[GM_ALL].current > d->marked)
		d->marked = a->allocated_bytes[GM_ALL].current;
}

void gm_account_leave(struct gm_stats *a, int64_t taken, int64_t requested)
{
	leave(a, GM_ALL, taken, requested);
	leave(a, kind_of(taken), taken, requested);
}
