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
/* gm_free gives back what gm_malloc returned; size and stream are those of the request. NULL does nothing. */
void gm_free(void *p, ssize_t size, int device, void *stream);
/* gm_record_stream says that a stream, too, uses the memory at p: it is not reused before that stream's work so far is done. */
void gm_record_stream(void *p, void *stream);
void gm_init(int devices);
/* gm_reset gives cached memory back to the driver, on all devices: torch.cuda.empty_cache. */
void gm_reset(void);
/* gm_memory_fraction bounds what is taken from a device to a fraction of its memory. */
void gm_memory_fraction(double fraction, int device);
/* gm_base_alloc returns the start of the memory that p lies in, and its size. */
void *gm_base_alloc(void *p, size_t *size);
/* Requests of a device that filter, a std::function<bool(cudaStream_t)>, accepts go to a private pool between begin and end. */
void gm_begin_pool(int device, uint64_t id0, uint64_t id1, void *filter);
void gm_end_pool(int device, uint64_t id0, uint64_t id1);
void gm_release_pool(int device, uint64_t id0, uint64_t id1);

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
	struct gm_counter requested_bytes[GM_POOL_KINDS]; /* as asked for */
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
void gm_reset_accumulated_stats(int device);
/* gm_snapshot copies a JSON text of segments and blocks, at most n bytes with the final 0, and returns its whole length. The
 * segments are those of torch.cuda.memory_snapshot(); docs/gmstitch.md has the fields. */
size_t gm_snapshot(char *text, size_t n);
/* gm_device_of returns the device whose memory gm_malloc gave at p, -1 if it did not. */
int gm_device_of(void *p);
/* gm_version returns the version of libgm.so. */
const char *gm_version(void);

#ifdef __cplusplus
}
#endif
#endif
