/* Who asked for memory: the library whose code called, and, on request, the stack above it. */
#ifndef GM_CALLER_H
#define GM_CALLER_H

#include <stdint.h>

/* The code that called into the CUDA runtime, while the runtime is running in this thread; 0 otherwise. */
extern __thread uintptr_t gm_runtime_caller __attribute__((tls_model("initial-exec")));

/* gm_caller returns the outermost caller: that of the runtime if there is one, else the given one, and makes the library that it is in
 * known to the reader of the ring. */
uintptr_t gm_caller(void *direct);

/* gm_stack fills frames with the return addresses of the calling thread, innermost first, and returns how many; 0 when stacks are
 * not wanted. The libraries they are in are made known. */
int gm_stack(uintptr_t *frames, int max);

#endif
