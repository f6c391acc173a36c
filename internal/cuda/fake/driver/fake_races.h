/* What a program tells of kernels that it has none of: GM_FAKE_RACES sees them in the order of their streams. */
#ifndef FAKE_RACES_H
#define FAKE_RACES_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_types.h"

#define FAKE_RACES_API __attribute__((visibility("default")))

/* fake_touch: a kernel that is queued in a stream reads or writes memory. Mark says where in the program. */
FAKE_RACES_API void fake_touch(CUstream stream, CUdeviceptr address, size_t size, bool write, const char *mark);
/* fake_host_touch: the host reads or writes memory. */
FAKE_RACES_API void fake_host_touch(const void *p, size_t size, bool write, const char *mark);
/* fake_forget: memory of the host is given back, and may be another's next. */
FAKE_RACES_API void fake_forget(const void *p, size_t size);
/* fake_drain waits until a stream is done, of which the program is to know nothing. */
FAKE_RACES_API void fake_drain(CUstream stream);
/* fake_mark says where in the program the calls of this thread come from, until it says something else. */
FAKE_RACES_API void fake_mark(const char *mark);

#endif
