/* Who requested memory: the library whose code made the call and, if wanted, the stack above it. */
#ifndef GM_CALLER_H
#define GM_CALLER_H

#include <stdint.h>

/* The code that called into the CUDA runtime, while this thread is in the runtime; 0 otherwise. */
extern __thread uintptr_t gm_runtime_caller __attribute__((tls_model("initial-exec")));

/* gm_caller returns the outermost caller: that of the runtime if there is one, else direct. It reports the caller's library to the reader
 * of the ring. */
uintptr_t gm_caller(void *direct);

/* gm_stack fills frames with the return addresses of the calling thread, innermost first, and returns their number; 0 if stacks are not
 * wanted. It reports their libraries to the reader of the ring. */
int gm_stack(uintptr_t *frames, int max);

#endif
