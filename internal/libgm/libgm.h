/* What the C and the Go half of libgm.so share. */
#ifndef LIBGM_H
#define LIBGM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#include "gm.h"
#pragma GCC visibility pop

#define GM_DEVICES 32
#define GM_FREES 1024
#define GM_UNIT INT64_C(512)                  /* sizes of blocks are multiples of it, in bytes */
#define GM_SMALL_SIZE ((size_t)1 << 20)       /* the largest small request, in bytes */
#define GM_SEGMENT_UNITS 4096                /* of a segment of small requests, which is of 2 MiB */

#pragma GCC visibility push(hidden)
#include "gate/gate.h"

/* One address that was freed. A slot is free for writing at position n when turn is n, and readable when turn is n + 1. */
struct gm_freed {
	_Atomic uint64_t turn;
	uint64_t address;
};

/* A device as C knows it: a lock that is held while Go works on the device, also during calls of the driver; the addresses that were freed
 * since, so that gm_free neither waits for that nor enters Go, where many threads push and whoever holds the lock pops; and the account,
 * with a lock that is held for a few instructions, with or without the other. */
struct gm_device {
	_Atomic uint64_t *version; /* in the page of statistics: odd while they change */
	struct gm_stats *account;  /* in the page of statistics */
	int64_t marked;            /* the most bytes that were handed out at a time since gm_mark_peak; changes with the account */
	_Alignas(64) _Atomic uint32_t lock;
	_Alignas(64) _Atomic uint32_t changing; /* the lock of the account and of held.h */
	_Atomic int64_t given; /* bytes that C has handed out, less those of warm blocks, which Go counts as handed out */
	_Atomic int64_t given_most; /* the most that this was since Go looked */
	_Atomic uint32_t keeps; /* 1: large blocks that are freed become warm; 0: they go to Go */
	_Atomic uint32_t warm; /* how many are warm */
	_Alignas(64) _Atomic uint64_t pushed;
	_Alignas(64) struct gm_freed freed[GM_FREES];
};

/* lock.c */
void gm_lock_wait(_Atomic uint32_t *lock); /* takes it, too */
void gm_lock_wake(_Atomic uint32_t *lock);

static inline bool gm_try_lock(_Atomic uint32_t *lock)
{
	uint32_t unlocked = 0;
	return atomic_compare_exchange_strong_explicit(lock, &unlocked, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void gm_lock_take(_Atomic uint32_t *lock)
{
	if (!gm_try_lock(lock))
		gm_lock_wait(lock);
}

static inline void gm_lock_give(_Atomic uint32_t *lock)
{
	if (atomic_exchange_explicit(lock, 0, memory_order_release) == 2)
		gm_lock_wake(lock);
}

/* devices.c */
extern struct gm_device gm_devices[GM_DEVICES];
extern _Atomic uint32_t gm_opened; /* a bit for each device that was used */
bool gm_device_valid(int device);
bool gm_device_open(int device);
void gm_set_open(int device, uint64_t *version, void *account);
/* A device is named by its number: cgo passes the address of an element of a C array as that of a copy. */
void gm_lock(int device);
bool gm_lock_at_exit(int device); /* gives up after a second: a thread may be stuck in the driver */
void gm_unlock(int device);
bool gm_push(int device, uint64_t address);

/* An address that is pushed with this bit is of a block that the account has left already. */
#define GM_COUNTED_BIT 1

#define LEGACY ((void *)1)     /* the same stream as 0 */
#define PER_THREAD ((void *)2) /* another stream in each thread */

/* swap.c */
void *gm_take_borrowed(void); /* what gm_swap_borrow took for the request of this thread, NULL if it did not */
void gm_keep_borrowed(void *p); /* for gm_take_borrowed */
void *gm_take_lodging(int device, size_t size, void *stream); /* what gm_swap_lodge took for such a request, NULL if it did not */
bool gm_give_back(void *p); /* these return false, or 0, for memory that was not borrowed */
bool gm_borrower_too(void *p, void *stream);
uint64_t gm_borrowed_from(void *p, uint64_t *size); /* where it begins */

/* account.c */
void gm_account_wait(int device); /* takes the lock, for Go */
void gm_account_wake(int device);
void gm_account_enter(struct gm_device *d, int64_t taken, int64_t requested);
void gm_account_leave(struct gm_stats *account, int64_t taken, int64_t requested);

static inline void gm_account_lock(int device)
{
	struct gm_device *d = &gm_devices[device];
	gm_lock_take(&d->changing);
	uint64_t version = atomic_load_explicit(d->version, memory_order_relaxed);
	atomic_store_explicit(d->version, version + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static inline void gm_account_unlock(int device)
{
	struct gm_device *d = &gm_devices[device];
	uint64_t version = atomic_load_explicit(d->version, memory_order_relaxed);
	atomic_store_explicit(d->version, version + 1, memory_order_release);
	gm_lock_give(&d->changing);
}

/* held.c: gm_held_put and gm_held_find at any time, all else with the lock of the device held. */
enum gm_fate { GM_UNKNOWN, GM_FREED, GM_COUNTED }; /* of what gm_free was given */
enum gm_block_state {
	GM_NO_BLOCK,
	GM_FREE_BLOCK,
	GM_LIVE_BLOCK,
	GM_LENT_BLOCK, /* live, and other streams use it: in Go's ledger */
	GM_AWAITED_BLOCK, /* lent and freed: Go waits for those streams */
	GM_LARGE_BLOCK, /* a live block of Go's allocator */
	GM_SPECIAL_BLOCK, /* the same, in Go's ledger */
	GM_WARM_BLOCK, /* one that was freed, which Go counts as live */
};
struct gm_view { /* a block; what is not live has requested nothing */
	uint64_t address, stream;
	int64_t requested, taken; /* bytes */
	int32_t state;
	bool first; /* a segment begins here, or it is a large block */
};
enum gm_fate gm_held_put(int device, uint64_t address); /* GM_COUNTED: for Go to free, but in the account it is freed */
/* gm_held_find finds a live request that is not in Go's ledger; lend passes it on to that. */
bool gm_held_find(int device, uint64_t address, bool lend, struct gm_view *view);
bool gm_held_room(int device); /* whether C is to hold requests that Go serves, and has room for one more */
/* gm_held_add: a block of a rank that is not negative, of bytes rounded up to GM_UNIT, may become warm. */
void gm_held_add(int device, uint64_t address, size_t bytes, int64_t taken, uint64_t stream, bool special, int32_t rank);
void gm_held_drop(int device, uint64_t address); /* counts a special request as freed, and forgets it */
void gm_held_return(int device, uint64_t address); /* frees a block that was lent */
size_t gm_held_view(int device, struct gm_view *views, size_t n); /* copies at most n blocks, segment by segment; how many there are */
void gm_held_begin(int device); /* before it nothing is served */
void gm_held_end(int device); /* forgets all requests; nothing more is served */

/* small.c: all but the first with the lock of the device held. */
void *gm_small_get(int device, size_t bytes, uint64_t stream); /* NULL: only Go can serve the request */
bool gm_small_room(int device, uint64_t stream); /* whether blocks of this stream, and a segment for them, may be added */
bool gm_small_add(int device, uint64_t address, uint64_t stream); /* a segment; false if there is no room for it */
uint64_t gm_small_remove(int device); /* takes out a segment that is wholly free, 0 if there is none */

/* warm.c */
void *gm_warm_get(int device, size_t bytes, uint64_t stream); /* NULL: only Go can serve the request */
/* gm_warm_take takes at most n blocks out, those first that became warm first, for Go to free; with the lock of the device held. */
size_t gm_warm_take(int device, uint64_t *to, size_t n);

/* fork.c */
extern atomic_bool gm_forked; /* this process is a forked child */
static inline bool forked(void) { return atomic_load_explicit(&gm_forked, memory_order_relaxed); }
#define GM_FORKED "This process was forked from one that used the GPU and cannot use it itself."

/* gm.c */
const char *gm_library(void); /* the file that this library was loaded from, "" if that is not known */
bool gm_open(int device); /* opens a device that is valid, unless it is open; without its lock */

/* filter.c: pools that are begun. */
int32_t gm_pool_of(int device, void *stream); /* 0 is the default pool */

/* segments.c: tells the observer of a range that got or lost memory, with the lock of the device held. */
void gm_tell_segment(int device, bool mapped, uint64_t address, uint64_t size, uint64_t stream);

/* full.c: whether anybody makes room. */
bool gm_relieved(void);
/* full.c: has room made for a request that found none, with no lock held. Returns the bytes that were freed, 0 if there is no more to free. */
size_t gm_make_room(int device, size_t size, void *stream);
/* full.c: the same where all else has failed. Returns whether room was made, or memory was borrowed, which is p then. */
bool gm_last_resort(int device, size_t size, void *stream, void **p);

/* served.c: the gate (gate/gate.h) and the connection to the memory server. The functions of the gate may be called once it was found. */
extern _Atomic int gm_server_socket; /* -1: there is no connection */
extern atomic_bool gm_served; /* the memory server may be asked for room */
bool gm_find_gate(void);
const char *gm_set_gate(bool open, int timeout_ms); /* opens or closes it; returns why it is not closed */
void gm_pass_gate(bool pass); /* whether this thread's calls pass while it is closed */
void gm_enter_gate(void); /* waits until it is open, and has this thread's calls pass from then on */
uint32_t gm_await_gate(uint32_t seen);
uint64_t gm_gated_calls(void);
size_t gm_passed_on(uint64_t *addresses, size_t room);
enum gm_room { GM_ROOM_NONE, GM_ROOM_MADE, GM_ROOM_THERE };
bool gm_ask_room(int device, size_t size); /* without the lock of the device; true: it is worth trying again */

/* keys.c: in the list of descriptors that forked children close has another one take the place of one; -1 is none. */
void gm_change_descriptor(int from, int to);

/* objects.c */
void gm_tell_evicted(gm_evicted *f, void *user, int64_t object);

/* share.c */
extern _Atomic int gm_share_socket; /* at which this process gives out its memory, -1 if it does not */

/* error.c: the text of this thread's last failure. */
void gm_set_error(const char *text, size_t n);
bool gm_refused(bool wrong, const char *text); /* sets the text if wrong, which it returns */
static inline bool gm_in_child(void) { return gm_refused(forked(), GM_FORKED); }
const char *gm_error(void);

/* oom.c */
void gm_throw_oom(const char *text);

#pragma GCC visibility pop
#endif
