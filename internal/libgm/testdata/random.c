/* Random work of many threads on several devices and streams, while calls of the driver fail.
 *
 * usage: random KEY=VALUE...
 *   seed, threads, ops (of each thread), devices
 *   rate    of a million calls of the driver within gm's fail
 *   error   with this error
 *   names   these calls, separated by commas; all if it is not there
 *   pools   private pools are begun and ended
 *   forks   children are made, which use gm, too
 *
 * No two live blocks share a byte; what was written to a block is read back, also while what was freed is still written to; a thread's
 * context stays its own; accounts are never negative; in the end nothing is held. It prints how many requests were met and failed, and how
 * many calls of the driver failed. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_fault.h"

#define STREAMS 4
#define DEVICES 4
#define LIVE 64
#define POOLS 3

static struct {
	uint64_t seed, threads, ops, devices, rate, error, pools, forks;
	const char *names;
} job = {.seed = 1, .threads = 1, .ops = 1000, .devices = 1, .error = 1};

static CUcontext contexts[DEVICES];
static CUstream streams[DEVICES][STREAMS];
static atomic_ulong met, failed;
static atomic_uint marks = 1;

/* All live blocks, of all threads. */
static struct range {
	uint64_t begin, end;
} live[64 * LIVE];
static int live_count;
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;

static void enter(uint64_t begin, uint64_t end)
{
	pthread_mutex_lock(&live_lock);
	for (int i = 0; i < live_count; i++)
		CHECK(live[i].end <= begin || end <= live[i].begin);
	live[live_count++] = (struct range){begin, end};
	pthread_mutex_unlock(&live_lock);
}

static void leave(uint64_t begin)
{
	int i = 0;
	pthread_mutex_lock(&live_lock);
	while (i < live_count && live[i].begin != begin)
		i++;
	CHECK(i < live_count);
	live[i] = live[--live_count];
	pthread_mutex_unlock(&live_lock);
}

struct block {
	void *p;
	size_t size;
	unsigned mark;
	int device, stream;
};

struct worker {
	uint64_t id, state;
	struct block blocks[LIVE];
	int count;
	int begun[POOLS]; /* times */
	char snapshot[1 << 18];
};

static uint64_t draw(struct worker *w, uint64_t below)
{
	w->state ^= w->state << 13;
	w->state ^= w->state >> 7;
	w->state ^= w->state << 17;
	return (w->state >> 11) % below;
}

/* begin has calls fail, in a context that gm does not expect, which it returns. */
static CUcontext begin(struct worker *w)
{
	uint64_t which = draw(w, 4 * job.devices);
	CUcontext ctx = which < job.devices ? contexts[which] : which == job.devices ? NULL : contexts[0];
	OK(cuCtxSetCurrent(ctx));
	fake_faults((unsigned)job.rate, (CUresult)job.error);
	return ctx;
}

/* end looks whether the thread is as it was. */
static void end(CUcontext before)
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
#define GM(worker, ...)                       \
	do {                                  \
		CUcontext ctx = begin(worker); \
		__VA_ARGS__;                  \
		end(ctx);                     \
	} while (0)

static CUstream stream_of(const struct block *b) { return streams[b->device][b->stream]; }

/* The words of a block that have its mark: the first, the last, and one in each 2 MiB, where pieces meet. */
static size_t next_word(const struct block *b, size_t word)
{
	size_t last = b->size / 4 - 1, step = 2 * MIB / 4;
	return word == last ? last + 1 : word + step < last ? word + step : last;
}

static void write_marks(const struct block *b, CUstream s)
{
	for (size_t i = 0; i < b->size / 4; i = next_word(b, i))
		OK(cuMemsetD32Async(at(b->p) + 4 * i, b->mark, 1, s));
}

static void read_marks(const struct block *b)
{
	OK(cuCtxSetCurrent(contexts[b->device]));
	OK(cuStreamSynchronize(stream_of(b)));
	for (size_t i = 0; i < b->size / 4; i = next_word(b, i)) {
		unsigned word;
		OK(cuMemcpyDtoHAsync_v2(&word, at(b->p) + 4 * i, 4, stream_of(b)));
		OK(cuStreamSynchronize(stream_of(b)));
		CHECK(word == b->mark);
	}
}

static size_t size_of_request(struct worker *w)
{
	return 4 + (draw(w, 4) ? draw(w, UINT64_C(1) << (6 + draw(w, 17))) : draw(w, MIB << draw(w, 6)));
}

static void get(struct worker *w)
{
	struct block b = {.size = size_of_request(w), .device = (int)draw(w, job.devices), .stream = (int)draw(w, STREAMS)};
	GM(w, b.p = gm_try_malloc(b.size, b.device, stream_of(&b)));
	if (!b.p) {
		failed++;
		return;
	}
	met++;
	b.mark = marks++;
	enter(at(b.p), at(b.p) + b.size);
	OK(cuCtxSetCurrent(contexts[b.device]));
	write_marks(&b, stream_of(&b));
	w->blocks[w->count++] = b;
}

/* lend has another stream write to a block, behind what its own has for it. */
static void lend(struct worker *w, const struct block *b)
{
	CUevent event;
	CUstream other = streams[b->device][draw(w, STREAMS)];
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(event, stream_of(b)));
	OK(cuStreamWaitEvent(other, event, 0));
	OK(cuEventDestroy_v2(event));
	GM(w, gm_record_stream(b->p, other));
	OK(cuCtxSetCurrent(contexts[b->device]));
	write_marks(b, other);
}

/* give frees a block, to which a stream may still write. */
static void give(struct worker *w)
{
	int i = (int)draw(w, (uint64_t)w->count);
	struct block b = w->blocks[i];
	w->blocks[i] = w->blocks[--w->count];
	read_marks(&b);
	b.mark = 0xdead0000;
	if (draw(w, 3) == 0)
		lend(w, &b);
	else if (draw(w, 2))
		write_marks(&b, stream_of(&b));
	leave(at(b.p));
	GM(w, gm_free(b.p, (ssize_t)b.size, b.device, stream_of(&b)));
}

static void check_account(int device)
{
	struct gm_stats s;
	if (gm_get_stats(device, &s))
		return;
	for (int i = 0; i < GM_POOL_KINDS; i++) {
		CHECK(s.allocation[i].current >= 0 && s.requested_bytes[i].current >= 0 && s.reserved_bytes[i].current >= 0);
		CHECK(s.active_bytes[i].current >= s.allocated_bytes[i].current && s.allocated_bytes[i].current >= 0);
	}
}

static void ask(struct worker *w)
{
	size_t size = 0;
	GM(w, check_account((int)draw(w, job.devices)));
	GM(w, size = gm_snapshot(w->snapshot, sizeof w->snapshot));
	CHECK(size >= 2 && w->snapshot[0] == '[');
	if (size < sizeof w->snapshot)
		CHECK(w->snapshot[size - 1] == ']' && strlen(w->snapshot) == size);
	if (w->count) {
		const struct block *b = &w->blocks[draw(w, (uint64_t)w->count)];
		char *base = NULL;
		int device = -1;
		GM(w, base = gm_base_alloc((char *)b->p + b->size / 2, &size));
		CHECK(base == b->p && size >= b->size);
		GM(w, device = gm_device_of(b->p));
		CHECK(device == b->device);
	}
}

static void change(struct worker *w)
{
	int device = (int)draw(w, job.devices);
	switch (draw(w, 4)) {
	case 0:
		GM(w, gm_memory_fraction(draw(w, 2) ? 1 : 0.6, device));
		break;
	case 1:
		GM(w, gm_reset_peak_stats(device));
		break;
	case 2:
		GM(w, gm_reset_accumulated_stats(device));
		break;
	default:
		GM(w, gm_reset());
	}
}

static void end_pool(struct worker *w, int pool)
{
	for (; w->begun[pool]; w->begun[pool]--) {
		GM(w, gm_end_pool(0, 7, (uint64_t)pool));
		GM(w, gm_release_pool(0, 7, (uint64_t)pool));
	}
}

static void pool(struct worker *w)
{
	int which = (int)draw(w, POOLS);
	if (draw(w, 2)) {
		end_pool(w, which);
		return;
	}
	GM(w, gm_begin_pool(0, 7, (uint64_t)which, NULL));
	w->begun[which]++;
}

static void spawn(struct worker *w)
{
	pid_t child = fork();
	if (!child) {
		struct gm_stats s;
		alarm(20);
		CHECK(!gm_try_malloc(1000, 0, NULL) && gm_get_stats(0, &s) == -1);
		if (w->count)
			gm_free(w->blocks[0].p, 0, 0, NULL);
		gm_reset();
		if (draw(w, 2))
			_exit(0);
		exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void *work(void *argument)
{
	struct worker *w = argument;
	w->state = (job.seed * 1000003 + w->id) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	fake_fault_seed(w->state);
	for (uint64_t i = 0; i < job.ops; i++) {
		uint64_t what = draw(w, 100);
		if (what < 50 && w->count < LIVE)
			get(w);
		else if (what < 94 && w->count)
			give(w);
		else if (what < 97)
			ask(w);
		else if (what == 97)
			change(w);
		else if (what == 98 && job.pools && w->id == 0)
			pool(w);
		else if (what == 99 && job.forks && w->id == 0)
			spawn(w);
	}
	while (w->count)
		give(w);
	for (int i = 0; i < POOLS; i++)
		end_pool(w, i);
	return NULL;
}

static void read_arguments(char **arguments)
{
	const struct {
		const char *key;
		uint64_t *value;
	} keys[] = {{"seed", &job.seed}, {"threads", &job.threads}, {"ops", &job.ops}, {"devices", &job.devices},
	            {"rate", &job.rate}, {"error", &job.error}, {"pools", &job.pools}, {"forks", &job.forks}};
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
	CHECK(job.threads <= 64 && job.devices >= 1 && job.devices <= DEVICES);
}

static void run_threads(void)
{
	pthread_t threads[64];
	struct worker *workers = calloc(job.threads, sizeof *workers);
	CHECK(workers);
	for (uint64_t i = 0; i < job.threads; i++) {
		workers[i].id = i;
		CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
	}
	for (uint64_t i = 0; i < job.threads; i++)
		pthread_join(threads[i], NULL);
	free(workers);
}

int main(int argc, char **argv)
{
	(void)argc;
	read_arguments(argv + 1);
	alarm(120);
	for (int d = 0; d < (int)job.devices; d++) {
		start(d);
		OK(cuCtxGetCurrent(&contexts[d]));
		for (int i = 1; i < STREAMS; i++)
			OK(cuStreamCreate(&streams[d][i], CU_STREAM_NON_BLOCKING));
	}
	fake_fault_names(job.names);
	run_threads();
	for (int d = 0; d < (int)job.devices; d++) {
		OK(cuCtxSetCurrent(contexts[d]));
		OK(cuCtxSynchronize());
		gm_memory_fraction(1, d);
	}
	gm_reset();
	gm_reset(); /* what other devices were in the way of */
	for (int d = 0; d < (int)job.devices; d++) {
		struct gm_stats s = stats_of(d);
		CHECK(s.allocation[GM_ALL].current == 0 && s.requested_bytes[GM_ALL].current == 0);
		CHECK(s.allocated_bytes[GM_ALL].current == 0 && s.active_bytes[GM_ALL].current == 0);
		CHECK(s.reserved_bytes[GM_ALL].current == 0 && s.segment[GM_ALL].current == 0);
	}
	printf("%lu %lu %lu\n", met, failed, fake_fault_count());
	return 0;
}
