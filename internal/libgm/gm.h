/* gm.h: what libgm.so offers to programs. All functions may be called from any thread and at any time: before CUDA is
 * initialised, after the driver is shut down, and in a forked child, where allocating fails and freeing does nothing. */
#ifndef GM_H
#define GM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The functions of torch.cuda.memory.CUDAPluggableAllocator. A stream is a CUstream, 0 the legacy default stream. */

/* gm_malloc returns size bytes for work on a stream of a device (an ordinal). 0 bytes are NULL. In a PyTorch process a request that
 * cannot be met throws torch.OutOfMemoryError; elsewhere it returns NULL, and gm_last_error says why. */
void *gm_malloc(ssize_t size, int device, void *stream);
/* gm_free releases what gm_malloc returned; size and stream are those of the request. NULL does nothing. */
void gm_free(void *p, ssize_t size, int device, void *stream);
/* gm_record_stream says that another stream also uses the memory at p: it is not reused before that stream's work so far is done. The
 * handle of a default stream stands for those of all devices that have memory from here, as it does not tell which one is meant. */
void gm_record_stream(void *p, void *stream);
void gm_init(int devices);
/* gm_reset returns cached memory to the driver, on all devices: torch.cuda.empty_cache. */
void gm_reset(void);
/* gm_memory_fraction bounds what is taken from a device to a fraction of its memory. */
void gm_memory_fraction(double fraction, int device);
/* gm_base_alloc returns the start of the memory that p lies in, and its size. */
void *gm_base_alloc(void *p, size_t *size);
/* Requests of a device that filter, a std::function<bool(cudaStream_t)>, accepts go to a private pool between begin and end. Its free
 * memory may be returned to the driver after as many releases as begins. Until a request comes from a stream that is not captured, the
 * pool counts as that of a CUDA graph, and no memory is returned to the driver while a graph is captured. A pool that cannot be begun
 * throws as gm_malloc does; then there is nothing to end or to release. */
void gm_begin_pool(int device, uint64_t id0, uint64_t id1, void *filter);
void gm_end_pool(int device, uint64_t id0, uint64_t id1);
void gm_release_pool(int device, uint64_t id0, uint64_t id1);

/* gm_retain_pool is gm_begin_pool without the begin: it makes a pool unless it exists, and its memory stays for it until gm_release_pool.
 * A torch.cuda.MemPool retains one for its life. It returns 0, or -1 if the device cannot be used. */
int gm_retain_pool(int device, uint64_t id0, uint64_t id1);
/* gm_pool_uses returns the begins and retains of a pool minus its releases, -1 if there is no such pool. An unused pool is one until it has
 * no memory left. */
int gm_pool_uses(int device, uint64_t id0, uint64_t id1);
/* gm_had_pools returns 1 if a pool was ever begun on a device, as for a CUDA graph, which knows memory by its address, and 0 otherwise. */
int gm_had_pools(int device);
/* gm_reset_pool returns the cached memory of one pool to the driver, as gm_reset does with those of all, unless the pool is used. */
void gm_reset_pool(int device, uint64_t id0, uint64_t id1);
/* gm_pool_use_on_oom lets the free memory of a pool serve requests of the default pool that could not be met otherwise, until on is 0. What
 * is served so counts as a request of that pool. */
void gm_pool_use_on_oom(int device, uint64_t id0, uint64_t id1, int on);

/* The state of a private pool, for graphs that share one as a tree (PyTorch's cudagraph_trees): what is live after a graph was captured is
 * brought back before another graph is captured behind it. */

struct gm_live { /* a live request */
	uint64_t address;
	int64_t size; /* bytes as requested */
	uint64_t stream;
};
/* gm_pool_live copies the live requests of a pool, at most room of them, in no order. It returns their number, or -1 if there is no such
 * pool. What was freed before the call is not among them. */
int64_t gm_pool_live(int device, uint64_t id0, uint64_t id1, struct gm_live *blocks, size_t room);
/* gm_pool_restore makes exactly these n requests the live ones of the pool, at their addresses. Those that are live now and not among them
 * are freed. Each must lie where the pool had a request of that stream before: its memory stays with it as long as the pool is used.
 * It waits for other streams that use what is freed. It returns 0, or -1, with gm_last_error, and has changed nothing. That is so if
 * the blocks overlap or are elsewhere, if a stream would have to be waited for during a capture, and with the allocator gmlake for
 * requests of more than 1 MiB. */
int gm_pool_restore(int device, uint64_t id0, uint64_t id1, const struct gm_live *blocks, size_t n);

/* For programs that are not PyTorch, and for what a pluggable allocator cannot answer. */

/* gm_try_malloc is gm_malloc that never throws: NULL if the request cannot be met. */
void *gm_try_malloc(size_t size, int device, void *stream);
/* gm_last_error copies the text of this thread's last failure, at most n bytes with the final 0, and returns its whole length. */
size_t gm_last_error(char *text, size_t n);

struct gm_counter { /* torch.cuda.memory_stats: current, peak, allocated, freed */
	int64_t current, peak, allocated, freed;
};
enum gm_pool_kind { GM_ALL, GM_SMALL, GM_LARGE, GM_POOL_KINDS };
struct gm_stats {
	struct gm_counter allocation[GM_POOL_KINDS];      /* requests that are live: a count */
	struct gm_counter allocated_bytes[GM_POOL_KINDS]; /* in blocks that are handed out, rounding included */
	struct gm_counter requested_bytes[GM_POOL_KINDS]; /* as requested */
	struct gm_counter active_bytes[GM_POOL_KINDS];    /* handed out, or freed and still used by a stream */
	struct gm_counter reserved_bytes[GM_POOL_KINDS];  /* physical memory taken from the driver */
	struct gm_counter segment[GM_POOL_KINDS];         /* pieces of physical memory: a count */
	int64_t retries;                                  /* times that the cache was emptied because the device was full */
	int64_t ooms;
	int64_t stitches;     /* requests that were met by mapping free pieces together */
	int64_t driver_calls; /* on memory, one for each piece of a range */
	int64_t driver_ns;    /* that they took */
};
/* gm_get_stats fills in the account of a device; 0, or -1 if there is none. */
int gm_get_stats(int device, struct gm_stats *stats);
void gm_reset_peak_stats(int device);
/* gm_mark_peak has gm_marked_peak return the most bytes that are handed out at a time from now on. The peaks of the account stay as they are. */
void gm_mark_peak(int device);
int64_t gm_marked_peak(int device);
void gm_reset_accumulated_stats(int device);
/* gm_snapshot copies a JSON text of segments and blocks, at most n bytes with the final 0, and returns its whole length. The
 * segments are those of torch.cuda.memory_snapshot(); docs/gmstitch.md has the fields. */
size_t gm_snapshot(char *text, size_t n);
/* gm_share writes a handle by which other processes of the same user open the memory of the live request that p lies in, at p: printable
 * bytes without a final 0, at most room of them. It returns the length of the whole handle, or 0, with gm_last_error, if the memory
 * cannot be shared. The request must stay live until the others have closed it, and this process must run when they open it: it
 * answers them at a socket, in the same network namespace. A handle also opens what lies beside the request in the same pieces of memory. */
size_t gm_share(void *p, char *handle, size_t room);
/* gm_open_shared maps the memory of a handle of n bytes and returns p in this process, accessible to a device and to what that shares its
 * memory with, or NULL, with gm_last_error. What is open already is not mapped again. It counts nowhere as memory that gm has taken.
 * Each return is ended by a gm_close_shared, whose last one for the memory waits for the device and unmaps it; during a capture that
 * is left to a later call of these two or of gm_reset. */
void *gm_open_shared(const char *handle, size_t n, int device);
void gm_close_shared(void *p);
/* A gm_segment_observer is told of each range of addresses of a device that gets memory (mapped is 1) or loses it (0). The stream is that of
 * the request for which the memory was taken or mapped. A piece of physical memory that is mapped at several addresses is told of at each;
 * a range that loses memory may be part of one that got it, or several. It is called with the lock of the device held, so it calls no
 * function of gm, does not wait for a thread that may, and throws nothing. */
typedef void gm_segment_observer(int device, int mapped, uint64_t address, uint64_t size, uint64_t stream);
/* gm_observe_segments has f told of what happens from now on; NULL ends that. There is one observer: when this returns, the one before is
 * not being called any more. */
void gm_observe_segments(gm_segment_observer *f);

/* What gm_iteration returns. */
enum gm_plan {
	GM_UNPLANNED, /* each request is served by itself */
	GM_RECORDED,  /* requests are recorded */
	GM_PLANNING,  /* another process lays them out */
	GM_FOLLOWED   /* they get the addresses of a plan */
};
/* gm_iteration gives the large requests of a device the addresses of a plan, for a program that repeats itself: with begins = 1 it is called where
 * an iteration begins. Two iterations are recorded, and the first is laid out by another process while requests are served as before; from a later
 * iteration on they get their places in that, without search and without a driver call. What differs is served by itself. With begins = 0 the plan
 * ends: a program calls it so when its iterations are about to change. A plan also ends when a request would fail otherwise. During a capture
 * it stays until a call after that. Returns a gm_plan, or -1 where there can be none: the planner failed before, there is none, the settings name
 * another allocator or another plan, the device is not open, or the process is a forked child. */
int gm_iteration(int device, int begins);

/* A gm_relief makes room for a request of size bytes on a stream that found none: it frees memory of the device by gm_free, and returns how many
 * bytes, or 0 if it can free no more; then caches are emptied, streams are waited for, and it is asked for the last time (gm_asked_last), unless the
 * request is one of a pool. Where it returns GM_BORROW then, the request has what gm_swap_borrow took for it; where it returns 0 the request fails.
 * It is called in the thread of the request, with no lock held, and within itself if it requests memory that is not there. */
#define GM_BORROW ((size_t)-1)
typedef size_t gm_relief(int device, size_t size, void *stream);
/* gm_asked_last returns 1 within the last call for a request. */
int gm_asked_last(void);
/* gm_on_full has f make room from now on; NULL ends that, but for calls under way. There is one. */
void gm_on_full(gm_relief *f);

enum gm_state { GM_FREE, GM_USED, GM_PENDING /* freed, and still used by a stream */ };
struct gm_block {
	uint64_t address, segment; /* where the block begins, and its segment: a range of addresses that has memory */
	int64_t size, requested;   /* bytes; requested is 0 unless the block is used */
	uint64_t stream, id0, id1; /* of the segment; the default pool is 0 and 0 */
	int32_t state, small;      /* enum gm_state; small is 1 in a segment for small requests */
};
/* gm_blocks fills in the blocks of a device, by address, as many as there is room for. It returns their number, -1 if the device was not
 * used. */
int64_t gm_blocks(int device, struct gm_block *blocks, size_t room);
/* gm_find fills in the live request of a device at p, as a segment of its own; 0, or -1 if there is none. */
int gm_find(int device, void *p, struct gm_block *block);
/* gm_device_of returns the device whose memory gm_malloc gave at p, -1 if it did not. */
int gm_device_of(void *p);
/* gm_version returns the version of libgm.so, which may be newer than that of this header. */
#define GM_VERSION "0.1.0"
const char *gm_version(void);

/* The swapper moves memory of a device to pinned memory of the host and back, by the order of streams alone: none of these but
 * gm_swap_close waits for a copy. The memory may come from any allocator, whose calls do not wait for these. They return 0, or -1 after
 * a failure, whose text gm_last_error returns; in a forked child all of them fail. */

/* gm_swap_open begins to use a device, in its primary context, and at most host_bytes of the host, which are pinned as they are needed
 * and not released before gm_swap_close. Where several devices are open they have as much together as the first of them may. If timed is
 * not 0 the copies are timed. */
int gm_swap_open(int device, size_t host_bytes, int timed);
/* gm_swap_out copies n bytes at from to the host, behind the work that a stream holds now. It returns a ticket, more than 0, or 0 after
 * a failure, such as a host that is full or a stream that is captured into a CUDA graph. */
int64_t gm_swap_out(int device, void *from, size_t n, void *stream);
/* gm_swap_expect takes memory of the host in the background, for tickets that will hold n bytes together, so that pinning it takes little
 * time. */
int gm_swap_expect(int device, size_t n);
/* gm_swap_left has a stream wait for the copy out: its work from then on may overwrite the memory, which may be freed on that
 * stream. */
int gm_swap_left(int device, int64_t ticket, void *stream);
/* gm_swap_in copies what a ticket holds to the memory at to, behind the work that a stream holds now. It may be called again. */
int gm_swap_in(int device, int64_t ticket, void *to, void *stream);
/* gm_swap_ready has a stream wait for the last copy in: its work from then on may read the memory. */
int gm_swap_ready(int device, int64_t ticket, void *stream);
/* gm_swap_drop ends a ticket, whose copies go on. */
int gm_swap_drop(int device, int64_t ticket);
/* gm_swap_copied returns 1 if the copy out has passed, 0 if it has not, or -1. */
int gm_swap_copied(int device, int64_t ticket);

/* gm_swap_words copies n words of some bytes, of which each begins pitch bytes behind the one before, to one behind the other, behind the work that a stream holds
 * now. Both are memory that the device uses. */
int gm_swap_words(int device, void *to, void *from, size_t pitch, size_t word, size_t n, void *stream);

/* gm_swap_borrow takes n bytes of the host for the request for which a gm_relief is called in this thread for the last time, which returns GM_BORROW
 * then. Kernels of the device use them in place, over the link. They are pinned, count as what gm_swap_open may use of the host, and stand in no
 * account of the device; gm_free, gm_record_stream, gm_base_alloc, gm_find and gm_device_of know them. It returns 0, or -1 if there are none. */
int gm_swap_borrow(int device, size_t n, void *stream);
/* gm_swap_lodge takes n bytes of the host, more than 1 MiB, for the next request of this thread for as many on a device and a stream, not one of a pool:
 * it has them, as if it had found no room. What nobody has asked for by the next call is given back; n = 0 does that alone. It returns 0, or -1 if there
 * are none. */
int gm_swap_lodge(int device, size_t n, void *stream);
/* gm_swap_borrowed returns the device that has borrowed what lies at p, -1 for other memory. */
int gm_swap_borrowed(void *p);
/* gm_within returns 1 if a function has called, directly or not, whose name contains one of the texts that | separates (255 bytes in all), as far as its library
 * exports it, and 0 otherwise. */
int gm_within(const char *texts);

struct gm_swap_stats {
	int64_t copies_out, copies_in;
	int64_t bytes_out, bytes_in;
	int64_t host_bytes, host_peak;   /* that tickets hold */
	int64_t arena_bytes;             /* that they may: those of gm_swap_open, or what of them could be pinned */
	int64_t pinned_bytes;            /* taken from the host */
	int64_t registrations, pin_ns;   /* in which they were pinned, and what that took */
	int64_t out_busy_ns, in_busy_ns; /* that copies took that have passed; 0 unless they are timed */
	int64_t borrows;                 /* requests that got memory of the host */
	int64_t borrowed_bytes, borrowed_peak;
};
int gm_swap_get_stats(int device, struct gm_swap_stats *stats);
/* gm_swap_close waits for the copies and releases everything; what tickets hold is lost. */
void gm_swap_close(int device);

/* gm_swap_plan has the planner, another process, answer a request for a schedule: a JSON text of n bytes (internal/swap/request has
 * the fields). It copies the answer, another JSON text that was checked, at most room bytes with the final 0, and returns its whole
 * length, or -1. It takes up to seconds, two minutes at most, and needs no device. */
int64_t gm_swap_plan(const char *request, size_t n, char *answer, size_t room);
/* gm_order does the same with a request for an order of operators (internal/order/request has the fields). It takes two seconds longer
 * than the request allows at most. */
int64_t gm_order(const char *request, size_t n, char *answer, size_t room);
/* gm_partition does the same with a request for what a compiled graph saves for its backward pass (internal/swap/partition has the fields).
 * It takes 20 seconds at most. */
int64_t gm_partition(const char *request, size_t n, char *answer, size_t room);

/* Memory that the processes of a user have by a key, such as the weights of a model, with gmswap serve (docs/server.md): the first that opens
 * the key makes the memory, fills it and freezes it, and the others map the same memory. It counts once, and outlives the process that made
 * it. These return -1, 0 or NULL after a failure, whose text gm_last_error returns; in a forked child all of them fail. */

struct gm_key {
	int64_t id;
	void *address; /* NULL if there is no memory of this key: this process is to make it */
	size_t size;   /* bytes, in whole pages of 2 MiB */
};
/* gm_key_open opens a key of 1 to 255 bytes for a device, and fills in what it has; 0, or -1. While another process makes the memory it waits
 * for that. The memory is in the device's primary context, and read-only: a kernel that writes there ends this process's use of the device. */
int gm_key_open(int device, const char *key, struct gm_key *opened);
/* gm_key_make makes memory of at least size bytes for a key that has none, and returns where it is. Until gm_key_freeze it can be written. */
void *gm_key_make(int64_t id, size_t size);
/* gm_key_write copies n bytes of the host into it, from an offset on; 0, or -1. */
int gm_key_write(int64_t id, size_t offset, const void *from, size_t n);
/* gm_key_freeze waits for the device, makes the memory read-only, at the same address, and lets others have it; 0, or -1. */
int gm_key_freeze(int64_t id);
/* gm_key_close waits for the device and unmaps the memory. Others have it still if it was frozen; else the next that opens the key makes it. */
int gm_key_close(int64_t id);

/* Objects of a process that do not fit on a card together (docs/server.md). What was put may leave the card for the host, and that for a file,
 * when others need the room: objects of this process, or, with gmswap serve, of other processes, and jobs. It comes back at the same
 * addresses. Streams are waited for, and made to wait, so that contents are in order. These return -1, 0 or NULL after a failure, whose
 * text gm_last_error returns; in a forked child all of them fail. */

/* A gm_evicted is told of an object that has left the card, in the thread that made it leave, which may be that which serves others: it calls
 * no function of the store. */
typedef void gm_evicted(void *user, int64_t object);
struct gm_store_options { /* all 0 is a good choice */
	size_t limit;       /* bytes of the card that the store may take; 0: no limit but the card's */
	size_t host;        /* bytes of the host that it may pin; 0: a quarter of the machine's memory */
	const char *policy; /* which objects leave first: lru, fifo, size-lru or latency; NULL is lru */
	const char *folder; /* of the file for what the host has no room for; NULL for none */
	const char *server; /* the socket of gmswap serve; NULL: GM_SERVER or the usual one; "" for none */
	const char *name;   /* of this process at the server; NULL: GM_NAME, or its command line */
	gm_evicted *evicted; /* NULL: nobody is told */
	void *user;
	const char *peers; /* other GPUs such as "1,2" that objects go to rather than to the host; NULL for none */
	size_t peer_limit; /* bytes that the store may take of them */
};
/* gm_store_open makes a store for a device, in its primary context, and returns its number, more than 0. Without a server that answers the
 * store is the process's own affair; it connects once there is one. The options may be NULL. */
int64_t gm_store_open(int device, const struct gm_store_options *options);
/* gm_store_close waits for the device and gives up all objects. */
int gm_store_close(int64_t store);
/* gm_store_create makes an object of size bytes for work on a stream, returns its number, and fills in where it is for all its life. It stays
 * on the card until it is put. Objects of over 1 MiB take whole pages of 2 MiB; smaller ones share them. */
int64_t gm_store_create(int64_t store, size_t size, void *stream, void **address);
/* gm_store_get returns where an object is, for work on a stream from now on, and keeps it on the card until it is put as often as it was created
 * and got. Where write is 0 the program leaves the contents as they are: it leaves the card without a copy if the host has one. */
void *gm_store_get(int64_t store, int64_t object, int write, void *stream);
/* gm_store_put says that all work on an object is in a stream by now, and when it is needed next: of two objects the one with the lesser next
 * is needed earlier. It may count steps, microseconds, or what the program likes; INT64_MAX is not known. What is needed first comes back
 * by itself when there is room. */
int gm_store_put(int64_t store, int64_t object, int64_t next, void *stream);
/* gm_store_free ends an object, wherever it is. Its memory is used again behind the work that the stream holds now. */
int gm_store_free(int64_t store, int64_t object, void *stream);
struct gm_store_stats {
	int64_t objects;
	int64_t card_bytes, unused_bytes;            /* taken from the card, and those of them that no object has */
	int64_t host_bytes, pinned_bytes, file_bytes; /* of objects that are away; pinned_bytes are taken from the host */
	int64_t gets, misses;                         /* and those of them that found the object away */
	int64_t evictions, clean, evicted_bytes;      /* that left the card; clean: the host had a copy */
	int64_t fetches, ahead, fetched_bytes;        /* that came back; ahead: before they were asked for */
	int64_t spilled_bytes, restored_bytes;        /* to the file, and from it */
	int64_t peer_bytes;                           /* of objects that are on other GPUs */
	int64_t evicting_ns;                          /* that evictions took, in nanoseconds */
};
int gm_store_get_stats(int64_t store, struct gm_store_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
