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

#pragma GCC visibility push(hidden)

/* One address that was freed. A slot is free for writing at position n when turn is n, and readable when turn is n + 1. */
struct gm_freed {
	_Atomic uint64_t turn;
	uint64_t address;
};

/* A device as C knows it: a lock that is held while Go works on the device, and the addresses that were freed since, so that
 * gm_free neither waits nor enters Go. Many threads push, whoever holds the lock pops. */
struct gm_device {
	pthread_mutex_t lock;
	_Atomic uint64_t *version; /* in the page of statistics: odd while they change */
	_Alignas(64) _Atomic uint64_t pushed;
	_Alignas(64) struct gm_freed freed[GM_FREES];
};

/* devices.c */
extern struct gm_device gm_devices[GM_DEVICES];
extern _Atomic uint32_t gm_opened; /* a bit for each device that was used */
bool gm_device_valid(int device);
bool gm_device_open(int device);
void gm_set_open(int device, uint64_t *version);
/* A device is named by its number: cgo passes the address of an element of a C array as that of a copy. */
void gm_lock(int device);
bool gm_lock_at_exit(int device); /* gives up after a second: a thread may be stuck in the driver */
void gm_unlock(int device);
bool gm_push(int device, uint64_t address);

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

/* share.c */
extern _Atomic int gm_share_socket; /* at which this process gives out its memory, -1 if it does not */

/* error.c: the text of this thread's last failure. */
void gm_set_error(const char *text, size_t n);
const char *gm_error(void);

/* oom.c */
void gm_throw_oom(const char *text);

#pragma GCC visibility pop
#endif
