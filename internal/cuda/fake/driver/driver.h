/* The state of the fake libcuda.so.1, and what its files share. */
#ifndef DRIVER_H
#define DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"
#include "fake.h"

#define GRANULARITY (2 * MIB)

static inline uint64_t round_up(uint64_t n, uint64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/* calls.c: what every entry point does first. */
enum need { NEED_INIT, NEED_CONTEXT };
CUresult enter(const char *function, enum need need);
#define ENTER(need)                                      \
	do {                                             \
		CUresult entered = enter(__func__, need); \
		if (entered != CUDA_SUCCESS)             \
			return entered;                  \
	} while (0)
/* The lock of all state below except atomics. It is never held while user code or a copy runs. */
extern pthread_mutex_t driver_mutex;
void lock(void);
void unlock(void);
extern _Thread_local bool in_host_function;
extern _Thread_local const char *entered; /* the last function that this thread called */

/* fault.c: the delay, then the error, that the environment requests. */
CUresult fault_check(const char *function);
void fault_work(const char *function); /* the delay of work that a function queued in a stream */

/* counts.c: takes and returns memory of a device and counts it. size is the request, charge the memory used. */
void counts_attach(void);
CUresult device_take(int device, enum fake_kind kind, uint64_t size, uint64_t charge);
void device_give(int device, enum fake_kind kind, uint64_t size, uint64_t charge);
/* The same for FAKE_MEMORY, in 2 MiB pages, which allocations of less than 1 MiB share. */
CUresult memory_take(int device, uint64_t size);
void memory_give(int device, uint64_t size);
void count_alloc(enum fake_kind kind, uint64_t size);
void count_free(enum fake_kind kind, uint64_t size);
uint64_t device_free_bytes(int device);

/* table.c: address ranges by start, or handles by value. The table does not own its items. */
struct entry { uint64_t key, size; };
struct table {
	struct entry **items;
	size_t count, room;
};
bool table_insert(struct table *t, struct entry *e);
void table_remove(struct table *t, const struct entry *e);
void *table_at(const struct table *t, uint64_t key);
void *table_covering(const struct table *t, uint64_t key); /* the range that holds an address */
size_t table_from(const struct table *t, uint64_t key);    /* index of the first entry at or after key */

/* context.c */
struct CUctx_st {
	int device;
	bool primary;
	atomic_bool alive;
	_Atomic CUresult sticky; /* an error that all later calls return */
	unsigned flags;
	int retained; /* of a primary context */
	size_t limits[8];
	CUstream legacy;
	CUcontext next;
};
CUresult context_check(void);
CUcontext context_current(void);
int current_device(void); /* 0 when no context is current */
bool device_valid(CUdevice device);

/* blocks.c: allocations of all kinds except virtual memory management. */
enum block_kind { BLOCK_MEMORY, BLOCK_MANAGED, BLOCK_POOL, BLOCK_HOST, BLOCK_REGISTERED, BLOCK_OPENED };
struct block {
	struct entry range;
	enum block_kind kind;
	CUcontext ctx;
	int device;
	unsigned flags;
	CUmemoryPool pool;
	bool freed; /* of a pool, in stream order */
	int file;   /* the descriptor + 1 of memory that other processes may open */
};
extern struct table blocks;
struct block *block_add(enum block_kind kind, uint64_t size, uint64_t address); /* address 0: maps new memory */
void block_remove(struct block *b);
CUresult block_free(uint64_t address, unsigned kinds); /* of one of the kinds, a bit each; waits for the device */
void blocks_release(CUcontext ctx);
bool device_range(int device, uint64_t address, uint64_t size); /* whether a device may access all of it now */
bool device_address(uint64_t address);              /* whether the driver knows it */
bool host_range(uint64_t address, uint64_t size);   /* whether it is pinned as one piece, or not at all */

/* array.c */
void arrays_release(CUcontext ctx);

/* address.c */
struct entry *mapping_covering(uint64_t address);
bool mapped_range(int device, uint64_t address, uint64_t size); /* with access for the device */
struct entry *reservation_covering(uint64_t address);
int mapped_device(uint64_t address); /* -1: not mapped */

/* pool.c */
void pools_sync(int device); /* releases what exceeds the thresholds */
void pools_release_all(int device);
void pool_block_done(struct block *b); /* the stream has reached the free */
CUresult pool_free(struct block *b, CUstream stream);

/* queue.c: streams are threads. */
enum op_kind { OP_NOTHING, OP_COPY, OP_SET8, OP_SET32, OP_CALL, OP_RECORD, OP_WAIT, OP_AWAIT_WORD, OP_FREE };
struct after { CUstream stream; uint64_t sequence; };
struct op {
	struct op *next;
	enum op_kind kind;
	const char *function; /* that queued it */
	union {
		struct { uint64_t dst, src, size, rows, pitch; bool dst_device, src_device; } copy; /* size bytes of each row, which lie pitch bytes apart at src */
		struct { uint64_t dst, count; unsigned value; } set;
		struct { CUhostFn function; void *data; } call;
		struct record *record;
		struct { const uint32_t *at; uint32_t value; } word;
		struct block *block;
	};
	size_t afters;
	struct after after[]; /* events of other streams to wait for */
};
struct capture {
	CUstreamCaptureStatus status;
	CUstreamCaptureMode mode;
	const void *thread; /* that began it */
	CUstream next;
};
struct CUstream_st {
	CUstream next;
	CUcontext ctx;
	bool live, running, legacy;
	unsigned flags;
	int priority;
	const void *owner; /* of a per-thread default stream */
	struct capture capture;
	struct op *head, **tail;
	uint64_t queued, done;
	pthread_cond_t wake;
	unsigned clock; /* races.c */
};
/* One recording of an event. Work that waits for it keeps it when the event is recorded again. */
struct record {
	bool done;
	int64_t at_ns;
	int references;
	struct clock *clock; /* of its stream, races.c; NULL unless races are looked for */
	unsigned stream, refusals; /* since the last operation that was queued */
	uint64_t late, asked;      /* the host is not told before so many operations were queued; how many there were when it asked last */
};
struct CUevent_st {
	struct entry handle;
	CUcontext ctx;
	unsigned flags;
	struct record *last; /* NULL: never recorded */
};
CUstream stream_open(CUcontext ctx, unsigned flags, int priority);
void streams_close(CUcontext ctx);
CUresult stream_find(CUstream handle, CUstream *stream);
CUresult queue_op(CUstream stream, const struct op *op);           /* copies *op; the lock is held */
CUresult queue_op_and_wait(CUstream stream, const struct op *op);  /* the same */
void stream_close(CUstream stream);
bool stream_idle(CUstream stream); /* work queued now would run now */
bool stream_done(CUstream stream); /* as cuStreamQuery says */
void stream_drain(CUstream stream);
void context_drain(CUcontext ctx);
void device_drain(int device);
bool device_idle(int device); /* whether all its work is done */
void progress_wait(void); /* until some stream has made progress */
void record_unref(struct record *record);

/* capture.c */
CUresult capture_check(const char *function); /* invalidates captures that forbid it */
void capture_close(CUstream stream);

/* module.c */
void modules_release(CUcontext ctx);

#endif
