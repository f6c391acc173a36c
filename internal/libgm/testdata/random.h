/* What the random programs share: their arguments, a thread's draws, and calls of gm while calls of the driver fail. */
#ifndef RANDOM_H
#define RANDOM_H

#include "check.h"

#include <pthread.h>

#include "fake_fault.h"

#define DEVICES 4
#define THREADS 64
#define STREAMS 4 /* of each device, at most; the first is the default stream */

static struct job {
	uint64_t seed, threads, ops, devices, streams, rate, error, pools, forks;
	const char *names;
} job = {.seed = 1, .threads = 1, .ops = 1000, .devices = 1, .streams = STREAMS, .error = 1};

static CUcontext contexts[DEVICES];
static CUstream streams[DEVICES][STREAMS];

/* draws are those of a thread. */
struct draws {
	uint64_t state;
};

static inline uint64_t draw(struct draws *d, uint64_t below)
{
	d->state ^= d->state << 13;
	d->state ^= d->state >> 7;
	d->state ^= d->state << 17;
	return (d->state >> 11) % below;
}

/* begin has calls fail, in a context that gm does not expect, which it returns. */
static inline CUcontext begin(struct draws *d)
{
	uint64_t which = draw(d, 4 * job.devices);
	CUcontext ctx = which < job.devices ? contexts[which] : which == job.devices ? NULL : contexts[0];
	OK(cuCtxSetCurrent(ctx));
	fake_faults((unsigned)job.rate, (CUresult)job.error);
	return ctx;
}

/* end looks whether the thread is as it was. */
static inline void end(CUcontext before)
{
	CUcontext after;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	fake_faults(0, CUDA_SUCCESS);
	OK(cuCtxGetCurrent(&after));
	CHECK(after == before);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* GM makes a call of gm under faults. */
#define GM(worker, ...)                                  \
	do {                                             \
		CUcontext ctx = begin(&(worker)->draws); \
		__VA_ARGS__;                             \
		end(ctx);                                \
	} while (0)

/* start_draws begins the draws of a thread, and those of its faults. */
static inline void start_draws(struct draws *d, uint64_t thread)
{
	d->state = (job.seed * 1000003 + thread) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	fake_fault_seed(d->state);
}

static inline void read_arguments(char **arguments)
{
	const struct {
		const char *key;
		uint64_t *value;
	} keys[] = {{"seed", &job.seed}, {"threads", &job.threads}, {"ops", &job.ops}, {"devices", &job.devices},
	            {"streams", &job.streams}, {"rate", &job.rate}, {"error", &job.error}, {"pools", &job.pools}, {"forks", &job.forks}};
	for (; *arguments; arguments++) {
		char *value = strchr(*arguments, '=');
		CHECK(value);
		*value++ = 0;
		if (!strcmp(*arguments, "names")) {
			job.names = value;
			continue;
		}
		size_t i = 0;
		while (i < sizeof keys / sizeof *keys && strcmp(keys[i].key, *arguments))
			i++;
		CHECK(i < sizeof keys / sizeof *keys);
		*keys[i].value = strtoull(value, NULL, 10);
	}
	CHECK(job.threads <= THREADS && job.devices >= 1 && job.devices <= DEVICES && job.streams >= 1 && job.streams <= STREAMS);
}

/* start_devices makes the contexts and streams of the devices. */
static inline void start_devices(void)
{
	for (int d = 0; d < (int)job.devices; d++) {
		start(d);
		OK(cuCtxGetCurrent(&contexts[d]));
		for (int i = 1; i < STREAMS; i++)
			OK(cuStreamCreate(&streams[d][i], CU_STREAM_NON_BLOCKING));
	}
}

/* run_threads has each thread do work, whose argument points to the thread's number. */
static inline void run_threads(void *(*work)(void *))
{
	static uint64_t numbers[THREADS];
	pthread_t threads[THREADS];
	fake_fault_names(job.names);
	for (uint64_t i = 0; i < job.threads; i++) {
		numbers[i] = i;
		CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
	}
	for (uint64_t i = 0; i < job.threads; i++)
		pthread_join(threads[i], NULL);
}

#endif
