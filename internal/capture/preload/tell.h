/* Records of the hooked calls: allocations after the call, frees before it. */
#ifndef GM_TELL_H
#define GM_TELL_H

#include "driver.h"
#include "ring.h"

/* Number of records written by the hooks. If it did not change during a measurement, no other hooked call was made. */
extern _Atomic uint64_t gm_told;

/* DRIVER declares a function of the driver that is not hooked; CALL calls it. */
#define DRIVER(name, parameters) \
	typedef int name##_fn parameters; \
	static name##_fn *name##_get(void) \
	{ \
		static _Atomic(void *) found GM_FOUND; \
		void *fn = atomic_load_explicit(&found, memory_order_relaxed); \
		if (!fn) { \
			fn = gm_driver(#name); \
			atomic_store(&found, fn); \
		} \
		return (name##_fn *)fn; \
	}
#define CALL(name, ...) (name##_get() ? name##_get()(__VA_ARGS__) : CU_NOT_FOUND)

/* gm_device and gm_context return the calling thread's current device, -1 for none, and context, 0 for none; gm_memory the bytes of
 * the device. */
int gm_device(void);
uint64_t gm_context(void);
int gm_memory(size_t *free, size_t *total);

/* gm_tell adds a record, with the caller and, when wanted, its stack. */
void gm_tell(struct gm_record *r, void *caller);

/* gm_came records the outcome of a request: r if it succeeded, GM_OOM if memory was short. It returns result. GM_HERE in r.device stands
 * for the current device. */
int gm_came(int result, struct gm_record r, void *caller);

/* gm_came_here is gm_came for memory of the current context. */
int gm_came_here(int result, enum gm_kind kind, uint64_t at, uint64_t size, void *caller);

#define GM_HERE (-2)

/* gm_going records memory that a call is about to free, and returns whether it did; gm_gone records that the call failed, if it did, and
 * returns result. */
int gm_going(enum gm_kind kind, uint64_t at, uint64_t size, uint64_t stream, void *caller);
int gm_gone(int result, int told, enum gm_kind failed, uint64_t at, uint64_t size, void *caller);

#define CALLER __builtin_return_address(0)

/* GOT is what a successful call stored, else 0. */
#define GOT(result, p) ((result) == CU_SUCCESS ? (uint64_t)*(p) : 0)

/* CAME is gm_came_here for the caller of the hook. */
#define CAME(result, what, at, size) gm_came_here(result, what, at, size, CALLER)

#endif
