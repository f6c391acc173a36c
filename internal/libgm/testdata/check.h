/* Checks that end a test program with a line that says what was wrong, and what several programs need. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_api.h"
#include "gm.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define CHECK(condition)                                                               \
	do {                                                                           \
		if (!(condition)) {                                                    \
			fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

#define OK(call) CHECK((call) == 0)

/* start makes the primary context of a device current, as PyTorch does. */
static inline void start(int device)
{
	CUcontext ctx;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, device));
	OK(cuCtxSetCurrent(ctx));
}

static inline CUdeviceptr at(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

static inline struct gm_stats stats_of(int device)
{
	struct gm_stats s;
	OK(gm_get_stats(device, &s));
	return s;
}

#endif
