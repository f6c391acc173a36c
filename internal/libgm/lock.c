/* Locks that are 0 while they are free, 1 while they are held, 2 while others may sleep until they are free. books.go has the same steps.
 *
 * To be woken takes some 50 us, and often longer than the lock is held. So whoever waits spins first, for as long as that. */
#define _GNU_SOURCE
#include "libgm.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPIN_NS = 50000, LOOKS = 32 };

static void pause_briefly(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool spin(_Atomic uint32_t *lock)
{
	for (int64_t begin = 0;;) {
		for (int i = 0; i < LOOKS; i++) {
			if (!atomic_load_explicit(lock, memory_order_relaxed) && gm_try_lock(lock))
				return true;
			pause_briefly();
		}
		int64_t t = now();
		if (!begin)
			begin = t;
		else if (t - begin > SPIN_NS)
			return false;
	}
}

void gm_lock_wait(_Atomic uint32_t *lock)
{
	if (!spin(lock))
		while (atomic_exchange_explicit(lock, 2, memory_order_acquire))
			syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void gm_lock_wake(_Atomic uint32_t *lock) { syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }
