/* What the programs that swap need: tensors of one word, over and over. None of this uses the calls of the driver that the swapper uses. */
#ifndef SWAP_H
#define SWAP_H

#include <stdbool.h>
#include <time.h>

#include "check.h"

static inline CUstream stream(void)
{
	CUstream s;
	OK(cuStreamCreateWithPriority(&s, 1, 0));
	return s;
}

static inline void *device_memory(size_t n)
{
	CUdeviceptr p;
	OK(cuMemAlloc_v2(&p, n));
	return (void *)(uintptr_t)p;
}

/* fill writes a tensor of n bytes, a multiple of 4, in the order of a stream. */
static inline void fill(void *p, unsigned word, size_t n, CUstream s) { OK(cuMemsetD32Async(at(p), word, n / 4, s)); }

/* holds says whether a tensor is what it was filled with, when all streams are done. */
static inline bool holds(void *p, unsigned word, size_t n)
{
	unsigned *copy = malloc(n);
	OK(cuMemcpyDtoH_v2(copy, at(p), n));
	bool same = true;
	for (size_t i = 0; same && i < n / 4; i++)
		same = copy[i] == word;
	free(copy);
	return same;
}

static inline struct gm_swap_stats swap_stats(int device)
{
	struct gm_swap_stats s;
	OK(gm_swap_get_stats(device, &s));
	return s;
}

/* says tells whether the last failure's text has a part. */
static inline bool says(const char *part)
{
	char text[500];
	gm_last_error(text, sizeof text);
	if (strstr(text, part))
		return true;
	fprintf(stderr, "the text is: %s\n", text);
	return false;
}

static inline double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

#endif
