/* Copies that take their time in a stream (GM_FAKE_WORK): the call does not, other streams go on, and timed events tell. */
#include "start.h"

#include <time.h>

#define WORK_MS 100 /* as in the environment */

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(void)
{
	CUstream slow, fast;
	CUevent begin, end;
	CUdeviceptr p;
	unsigned *pinned;
	float ms;
	start();
	OK(cuStreamCreate(&slow, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&fast, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
	OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
	OK(cuMemAlloc_v2(&p, MIB));
	OK(cuMemHostAlloc((void **)&pinned, 8, 0));
	pinned[0] = 0, pinned[1] = 7;
	poke(p, 5);
	double called = now_ms();
	OK(cuEventRecord(begin, slow));
	OK(cuMemcpyDtoHAsync_v2(pinned, p, 4, slow));
	OK(cuEventRecord(end, slow));
	OK(cuMemcpyHtoDAsync_v2(p + 4, pinned + 1, 4, fast));
	OK(cuStreamSynchronize(fast));
	if (now_ms() - called < WORK_MS / 2) { /* else the machine was busy */
		GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(end));
		CHECK(pinned[0] == 0);
	}
	OK(cuStreamSynchronize(slow));
	CHECK(pinned[0] == 5 && peek(p + 4) == 7);
	OK(cuEventElapsedTime_v2(&ms, begin, end));
	CHECK(ms >= WORK_MS);
	OK(cuEventDestroy_v2(begin));
	OK(cuEventDestroy_v2(end));
	OK(cuStreamDestroy_v2(slow));
	OK(cuStreamDestroy_v2(fast));
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree_v2(p));
	return 0;
}
