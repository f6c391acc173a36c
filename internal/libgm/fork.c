/* A forked child has no Go and cannot use its parent's CUDA. It is marked here; each exported function refuses in C what the child asks. */
#include "libgm.h"

atomic_bool gm_forked;

static void in_child(void) { atomic_store(&gm_forked, true); }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }
