/* The lock of a device's account, which the page of statistics shows. Both halves change the account, each change with the lock held, for
 * a few instructions: never during a call of the driver. The version is odd meanwhile, for those who read the page without the lock.
 *
 * The lock is 0 while it is free, 1 while it is held, 2 while others may sleep until it is free. account.go has the same steps. */
#define _GNU_SOURCE
#include "libgm.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS = 100 };

static void pause_briefly(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void gm_account_wait(int device)
{
	_Atomic uint32_t *lock = &gm_devices[device].changing;
	for (int i = 0; i < SPINS; i++) {
		uint32_t unlocked = 0;
		if (atomic_load_explicit(lock, memory_order_relaxed) == 0 && atomic_compare_exchange_weak(lock, &unlocked, 1))
			return;
		pause_briefly();
	}
	while (atomic_exchange(lock, 2))
		syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void gm_account_wake(int device) { syscall(SYS_futex, &gm_devices[device].changing, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

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

void gm_account_enter(struct gm_stats *a, int64_t taken, int64_t requested)
{
	enter(a, GM_ALL, taken, requested);
	enter(a, kind_of(taken), taken, requested);
}

void gm_account_leave(struct gm_stats *a, int64_t taken, int64_t requested)
{
	leave(a, GM_ALL, taken, requested);
	leave(a, kind_of(taken), taken, requested);
}
