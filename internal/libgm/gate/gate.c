/* The gate. A thread notes in a slot of its own that it is within a call, before it looks whether the gate is closed; who closes it first
 * closes, then has all threads' stores be seen (membarrier), then looks at the slots. So either the thread sees the gate closed, or it
 * is seen. */
#define _GNU_SOURCE
#include "gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../capture/preload/driver.h"
#include "../../capture/preload/quiet.h"
#include "../../capture/preload/ring.h"

struct slot {
	_Alignas(64) _Atomic uint64_t calls; /* odd: the thread is within a call, or exempt */
	atomic_bool taken, exempt;
	struct slot *next;
};

static _Atomic(struct slot *) slots;
static __thread struct slot *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t ends;

static _Atomic uint32_t turns; /* a futex: how often the gate was closed or opened; odd while it is closed */
static _Atomic uint32_t found_closed; /* a futex: how many calls have */
static atomic_bool unwatched; /* there was no memory for the slot of a thread */
static atomic_bool fences; /* membarrier is not there: each call has a barrier of its own */
static _Atomic int captures;

static void futex_wait(_Atomic uint32_t *word, uint32_t value, const struct timespec *timeout)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

static void thread_ends(void *slot)
{
	struct slot *s = slot;
	mine = NULL;
	atomic_store(&s->exempt, false);
	atomic_store(&s->calls, (atomic_load(&s->calls) + 1) & ~UINT64_C(1)); /* odd if the thread was cancelled within a call */
	atomic_store(&s->taken, false);
}

static struct slot *join(void)
{
	GM_QUIETLY;
	struct slot *s = atomic_load(&slots);
	bool unused = false;
	while (s && !atomic_compare_exchange_strong(&s->taken, &unused, true)) {
		s = s->next;
		unused = false;
	}
	if (!s && (s = aligned_alloc(64, sizeof *s))) {
		*s = (struct slot){.taken = true, .next = atomic_load(&slots)};
		while (!atomic_compare_exchange_weak(&slots, &s->next, s))
			;
	}
	if (!s)
		atomic_store(&unwatched, true);
	else
		pthread_setspecific(ends, s);
	return mine = s;
}

/* hold waits until the gate is open, and says each time that it finds it closed: it may have been open for too short to be seen. */
static void hold(void)
{
	GM_QUIETLY;
	for (uint32_t now; (now = atomic_load(&turns)) & 1;) {
		atomic_fetch_add(&found_closed, 1);
		futex_wake(&found_closed);
		futex_wait(&turns, now, NULL);
	}
}

/* enter begins a call. It returns NULL within another one, and for a thread that is exempt. */
static inline struct slot *enter(void)
{
	struct slot *s = mine;
	if (__builtin_expect(!s, 0) && !(s = join()))
		return NULL;
	uint64_t n = atomic_load_explicit(&s->calls, memory_order_relaxed);
	if (n & 1)
		return NULL;
	for (;; n += 2) {
		if (__builtin_expect(atomic_load_explicit(&fences, memory_order_relaxed), 0))
			atomic_exchange(&s->calls, n + 1);
		else
			atomic_store_explicit(&s->calls, n + 1, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		if (__builtin_expect(!(atomic_load(&turns) & 1), 1))
			return s;
		atomic_store_explicit(&s->calls, n + 2, memory_order_release);
		hold();
	}
}

static inline void leave(struct slot *s)
{
	if (s)
		atomic_store_explicit(&s->calls, atomic_load_explicit(&s->calls, memory_order_relaxed) + 1, memory_order_release);
}

static bool within(void)
{
	for (struct slot *s = atomic_load(&slots); s; s = s->next)
		if (atomic_load(&s->calls) & 1 && !atomic_load(&s->exempt))
			return true;
	return false;
}

/* settled waits until no thread is within a call. */
static const char *settled(int timeout_ms)
{
	const struct timespec nap = {.tv_nsec = 100000};
	if (atomic_load(&unwatched))
		return "the gate had no memory to watch a thread";
	for (int64_t naps = 0; within(); naps++) {
		if (naps >= INT64_C(10) * timeout_ms)
			return "a call of the driver did not return in time";
		nanosleep(&nap, NULL);
	}
	return atomic_load(&captures) > 0 ? "a CUDA graph is being captured" : NULL;
}

GM_PUBLIC const char *gm_gate_close(int timeout_ms)
{
	atomic_fetch_or(&turns, 1);
	if (!atomic_load(&fences))
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	const char *why = settled(timeout_ms);
	if (why)
		gm_gate_open();
	return why;
}

GM_PUBLIC void gm_gate_open(void)
{
	uint32_t now = atomic_load(&turns);
	if (now & 1)
		atomic_store(&turns, now + 1);
	futex_wake(&turns);
}

GM_PUBLIC void gm_gate_exempt(bool exempt)
{
	struct slot *s = mine ? mine : join();
	if (!s || atomic_load(&s->exempt) == exempt)
		return;
	atomic_store(&s->exempt, exempt);
	atomic_fetch_add(&s->calls, 1);
}

GM_PUBLIC void gm_gate_pass(void) { leave(enter()); }

GM_PUBLIC uint32_t gm_gate_await(uint32_t seen)
{
	while (atomic_load(&found_closed) == seen)
		futex_wait(&found_closed, seen, NULL);
	return atomic_load(&found_closed);
}

GM_PUBLIC uint64_t gm_gate_calls(void)
{
	uint64_t n = 0;
	for (struct slot *s = atomic_load(&slots); s; s = s->next)
		n += atomic_load_explicit(&s->calls, memory_order_relaxed);
	return n;
}

/* In a child nothing sleeps, and it cannot use CUDA if its parent did. */
static void in_child(void)
{
	atomic_store(&turns, 0);
	atomic_store(&captures, 0);
	for (struct slot *s = atomic_load(&slots); s; s = s->next)
		if (s != mine)
			thread_ends(s);
}

__attribute__((constructor)) static void begin(void)
{
	GM_QUIETLY;
	pthread_key_create(&ends, thread_ends);
	pthread_atfork(NULL, NULL, in_child);
	atomic_store(&fences, syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0);
}

static bool (*_Atomic make_room)(int device, size_t bytes);

GM_PUBLIC void gm_gate_on_full(bool (*function)(int device, size_t bytes)) { atomic_store(&make_room, function); }

static int current_device(void)
{
	static _Atomic(void *) found GM_FOUND;
	int device = -1;
	if (!atomic_load(&found))
		atomic_store(&found, gm_driver("cuCtxGetDevice"));
	int (*get)(int *) = (int (*)(int *))atomic_load(&found);
	return get && get(&device) == CU_SUCCESS ? device : -1;
}

/* made_room says whether to make a call again that found no room on a device: CUDA takes memory by itself, for contexts, streams, and code
 * that it loads at the first launch. It waits, which a thread that moves memory must not, nor one that another call waits for. */
static bool made_room(int device, size_t bytes, int *tries)
{
	enum { TRIES = 20 };
	bool (*make)(int, size_t) = atomic_load(&make_room);
	if (!make || device < 0 || ++*tries > TRIES || (mine && atomic_load(&mine->calls) & 1))
		return false;
	if (!make(device, bytes))
		*tries = TRIES; /* the last: some room may have been made, if not all */
	return true;
}

/* On a full card CUDA also calls the device busy or unavailable (seen with driver 580, at a first launch). */
#define FULL(result) __builtin_expect((result) == CU_OUT_OF_MEMORY || (result) == CU_UNAVAILABLE, 0)

#undef PLAIN
#undef GATED
#undef FILLS
#define PLAIN(name, parameters)
#define GATED(name, parameters, ...)                                              \
	int name parameters                                                       \
	{                                                                         \
		int tries = 0, result;                                            \
		do {                                                              \
			struct slot *s = enter();                                 \
			result = REAL(name, __VA_ARGS__);                         \
			leave(s);                                                 \
		} while (FULL(result) && made_room(current_device(), 0, &tries)); \
		return result;                                                    \
	}
#define FILLS(name, parameters, device, bytes, ...)                               \
	int name parameters                                                       \
	{                                                                         \
		int tries = 0, result;                                            \
		do                                                                \
			result = REAL(name, __VA_ARGS__);                         \
		while (FULL(result) && made_room(device, bytes, &tries));         \
		return result;                                                    \
	}
#include "hooks.h"

/* A capture has begun before its call, as seen by who closes the gate, and has ended after it. */
#define CAPTURE(name, parameters, ...)                            \
	int name parameters                                       \
	{                                                         \
		struct slot *s = enter();                         \
		int result = REAL(name, __VA_ARGS__);             \
		if (result == CU_SUCCESS)                         \
			atomic_fetch_add(&captures, 1);           \
		leave(s);                                         \
		return result;                                    \
	}
CAPTURE(cuStreamBeginCapture, (void *stream), stream)
CAPTURE(cuStreamBeginCapture_ptsz, (void *stream), stream)
CAPTURE(cuStreamBeginCapture_v2, (void *stream, int mode), stream, mode)
CAPTURE(cuStreamBeginCapture_v2_ptsz, (void *stream, int mode), stream, mode)
#define INTO void *stream, void *graph, const void *after, const void *edges, size_t n, int mode
CAPTURE(cuStreamBeginCaptureToGraph, (INTO), stream, graph, after, edges, n, mode)
CAPTURE(cuStreamBeginCaptureToGraph_ptsz, (INTO), stream, graph, after, edges, n, mode)

/* ended says whether a capture is over, with a graph or in vain: not if another stream or thread has to end it. */
static bool ended(int result)
{
	enum { CAPTURE_UNSUPPORTED = 900, CAPTURE_UNMATCHED = 903, CAPTURED_EVENT = 907 };
	return result == CU_SUCCESS || (result >= CAPTURE_UNSUPPORTED && result <= CAPTURED_EVENT && result != CAPTURE_UNMATCHED);
}

#define END_CAPTURE(name)                                       \
	int name(void *stream, void **graph)                    \
	{                                                       \
		int result = REAL(name, stream, graph);         \
		if (ended(result))                              \
			atomic_fetch_sub(&captures, 1);         \
		return result;                                  \
	}
END_CAPTURE(cuStreamEndCapture)
END_CAPTURE(cuStreamEndCapture_ptsz)

/* The addresses that were passed on; more than these are counted alone. */
enum { PASSED_ON = 4096, SYNC_MEMOPS = 6 };
static _Atomic uint64_t passed_on[PASSED_ON];
static _Atomic size_t passed_on_count;

static void note(int result, uint64_t address)
{
	if (result != CU_SUCCESS)
		return;
	size_t i = atomic_fetch_add(&passed_on_count, 1);
	if (i < PASSED_ON)
		atomic_store(&passed_on[i], address);
}

GM_PUBLIC size_t gm_gate_passed_on(uint64_t *addresses, size_t room)
{
	size_t n = atomic_load(&passed_on_count);
	for (size_t i = 0; i < n && i < room && i < PASSED_ON; i++)
		addresses[i] = atomic_load(&passed_on[i]);
	return n;
}

/* PASSES defines the hook of a call that passes memory on. It is gated, so that who closes the gate sees all that was. */
#define PASSES(name, parameters, address, ...)        \
	int name parameters                           \
	{                                             \
		struct slot *s = enter();             \
		int result = REAL(name, __VA_ARGS__); \
		note(result, (uint64_t)(address));    \
		leave(s);                             \
		return result;                        \
	}
PASSES(cuMemRetainAllocationHandle, (uint64_t *handle, void *address), (uintptr_t)address, handle, address)
PASSES(cuMemGetHandleForAddressRange, (void *handle, uint64_t p, size_t size, int type, unsigned long long flags),
       p, handle, p, size, type, flags)
PASSES(cuIpcGetMemHandle, (void *handle, uint64_t p), p, handle, p)
PASSES(cuMulticastBindAddr, (uint64_t multicast, size_t offset, uint64_t p, size_t size, unsigned long long flags),
       p, multicast, offset, p, size, flags)

/* Who has the driver order its copies with those of network cards (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) lets these access the memory. */
int cuPointerSetAttribute(const void *value, int attribute, uint64_t p)
{
	struct slot *s = enter();
	int result = REAL(cuPointerSetAttribute, value, attribute, p);
	if (attribute == SYNC_MEMOPS)
		note(result, p);
	leave(s);
	return result;
}

/* What resolve.c wants of the library that it is part of: this one records nothing, and is no auditor. */
int gm_auditing;
void *gm_audited_driver(const char *name)
{
	(void)name;
	return NULL;
}
int gm_on(void) { return 0; }
void gm_push(struct gm_record *r, const void *text, unsigned n) { (void)r, (void)text, (void)n; }
