/* The ring in which a traced process records its memory for gmtrace: one file per process, mapped by both.
 *
 * The file is ring.<pid>.<n> in the folder GMTRACE_RINGS, which is in memory, or in GMTRACE_DIR if there is no room: a header of GM_HEADER
 * bytes, then GM_RECORDS slots of 64 bytes. It is created when the process first touches CUDA, under another name, and renamed when the
 * header is complete. Any thread adds records, without a lock; only gmtrace removes them. The file outlives the process, however that ends.
 *
 * A message is a record and record.extra slots of more bytes behind it. A writer claims the slots by adding to head, waits until
 * they are free (tail), writes the extra slots and then the record; each slot is valid once its seq is the slot's position plus one,
 * with GM_EXTRA set in extra slots, so that a reader can step over what a killed process left unfinished.
 *
 * internal/capture/ring reads it.
 */
#ifndef GM_RING_H
#define GM_RING_H

#include <stdatomic.h>
#include <stdint.h>

#define GM_MAGIC 0x32474e495254474dULL /* "MGTRING2" */
#define GM_VERSION 2
#define GM_HEADER 8192
#define GM_RECORDS 65536
#define GM_EXTRA (1ULL << 63)
#define GM_SLOT_BYTES 56

/* The kinds of records, each with the meaning of a, b, c and d; "-" is unused. Allocations are recorded after the call, frees before it, so
 * that a range of addresses is recorded as free before another thread can get it. */
enum gm_kind {
	GM_ALLOC = 1,    /* device memory: address, bytes, context */
	GM_MANAGED,      /* managed memory: address, bytes, context */
	GM_ARRAY,        /* an array: handle, bytes, context */
	GM_FREE,         /* any of these or memory of a pool is freed: address or handle, -, stream of an asynchronous free */
	GM_FREE_FAILED,  /* the thread's last GM_FREE failed */
	GM_CREATE,       /* physical memory: handle, bytes, 1 if on the host */
	GM_RETAIN,       /* one more reference to physical memory: handle, an address where it is mapped */
	GM_RELEASE,      /* one reference less: handle */
	GM_RELEASE_FAILED,
	GM_MAP,          /* address, bytes, handle, offset */
	GM_UNMAP,        /* address, bytes */
	GM_UNMAP_FAILED,
	GM_POOL_ALLOC,   /* memory in a pool: address, bytes, stream, pool */
	GM_POOL_SIZE,    /* device memory that a pool holds: -, bytes, -, pool */
	GM_POOL_GONE,    /* -, -, -, pool */
	GM_HOST_ALLOC,   /* pinned memory: address, bytes, context */
	GM_HOST_FREE,    /* address */
	GM_HOST_FREE_FAILED,
	GM_OOM,          /* a request that failed: gm_kind of the request, bytes, -, bytes that were free */
	GM_CONTEXT,      /* a context was made: context, bytes of the device in use after, bytes before if known, gm_now() before */
	GM_PRIMARY,      /* a device's primary context was made, as above */
	GM_CONTEXT_GONE, /* a context and all of its memory is gone: context, 0 for the primary one of the device */
	GM_GREW,         /* a call made the context's own memory grow, by code or limits: -, bytes, context, gm_growth */
	GM_DEVICE,       /* a device is first used: UUID in a and b, bytes; extra: name */
	GM_LIBRARY,      /* code first makes a call: from, to, offset in the file; extra: path */
	GM_UNKNOWN,      /* a function was looked up in a version that is not hooked; extra: name */
};

/* What made a context's own memory grow. */
enum gm_growth { GM_CODE, GM_LIMIT };

struct gm_record {
	_Atomic uint64_t seq;
	uint64_t time_ns; /* on CLOCK_MONOTONIC, which cannot be set */
	uint64_t a, b, c, d;
	uint64_t caller; /* address of the calling code, outside of the CUDA runtime; 0 if unknown */
	uint32_t thread;
	int16_t device; /* ordinal, -1 for none */
	uint8_t kind;
	uint8_t extra; /* number of slots after this one, with a stack (addresses, innermost first, ended by 0) or text */
};

struct gm_extra {
	_Atomic uint64_t seq;
	uint8_t bytes[GM_SLOT_BYTES];
};

struct gm_header {
	uint64_t magic;
	uint32_t version;
	uint32_t records;
	uint32_t pid;
	int32_t rank, local_rank, world_size; /* -1 unknown */
	uint64_t start_ns;      /* since the Unix epoch */
	uint64_t start_mono_ns; /* the same moment on the clock of the records */
	char command[4096 - 48]; /* words of the command line, each ended by 0; cut where it is longer */
	/* fields that change are on a page of their own */
	_Atomic uint64_t head; /* written by the process: slots claimed */
	uint64_t pad0[7];
	_Atomic uint64_t tail; /* written by gmtrace: slots read */
	_Atomic uint32_t closed; /* gmtrace reads no more, or is gone */
	uint32_t pad1;
	uint64_t pad2[6];
	_Atomic uint64_t waits;     /* times that a thread found the ring full */
	_Atomic uint64_t waited_ns; /* total time of these waits */
	_Atomic uint64_t lost;      /* messages that found it closed */
	_Atomic uint64_t given_up;  /* slots that lost messages had claimed */
};

_Static_assert(sizeof(struct gm_record) == 64, "a record is a slot");
_Static_assert(sizeof(struct gm_extra) == 64, "an extra is a slot");
_Static_assert(sizeof(struct gm_header) <= GM_HEADER, "the header fits");

/* gm_on returns whether this process is traced. The first call opens the ring. */
int gm_on(void);

/* gm_push adds a message. time_ns, thread and seq are filled in; text of n bytes, at most 255 slots, follows. */
void gm_push(struct gm_record *r, const void *text, unsigned n);

/* gm_now returns nanoseconds on the clock of the records. */
uint64_t gm_now(void);

#endif
