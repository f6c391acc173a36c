/* Cancels threads around their calls of the driver, and prints how each ended and what memory it then has. The argument says when: before the
 * first call of the process, before a later one, or, where GM_FAKE_DELAY makes that one wait, within it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "cuda_api.h"

CUresult plug_alloc(CUdeviceptr *p, size_t size);

static CUcontext context;
static CUdeviceptr got;

static void start(void)
{
	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
}

static void *pending(void *first)
{
	int state;
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state));
	if (!first)
		CHECK(cuCtxSetCurrent(context));
	CHECK(pthread_cancel(pthread_self()));
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state));
	if (first)
		start();
	plug_alloc(&got, 1 << 20);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return NULL;
}

static void *within(void *unused)
{
	(void)unused;
	CHECK(cuCtxSetCurrent(context));
	for (;;) /* the driver waits in each */
		cuMemAlloc_v2(&got, 1 << 20);
	return NULL;
}

static void cancelled(void *(*how)(void *), void *argument, int from_here)
{
	pthread_t thread;
	void *result;
	CHECK(pthread_create(&thread, NULL, how, argument));
	if (from_here) {
		usleep(3000);
		CHECK(pthread_cancel(thread));
	}
	CHECK(pthread_join(thread, &result));
	if (from_here) /* some time, so how much it has by then is chance */
		got = 0;
	printf("%s, %s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled", got ? "with memory" : "without memory");
}

int main(int argc, char **argv)
{
	CUdeviceptr p;
	const char *way = argc > 1 ? argv[1] : "";
	alarm(20);
	if (strcmp(way, "first") == 0) {
		cancelled(pending, way, 0);
		CHECK(cuCtxSetCurrent(context));
	} else {
		start();
		if (strcmp(way, "later") == 0)
			cancelled(pending, NULL, 0);
		else
			for (int i = 0; i < 10; i++)
				cancelled(within, NULL, 1);
	}
	CHECK(plug_alloc(&p, 4096));
	puts("goes on");
	return 0;
}
