/* Random work of many threads on several devices and streams, while calls of the driver fail.
 *
 * usage: random KEY=VALUE...
 *   seed, threads, ops (of each thread), devices, streams (of each device)
 *   rate    of a million calls of the driver within gm's fail
 *   error   with this error
 *   names   these calls, separated by commas; all if it is not there
 *   pools   private pools are begun and ended; without it each thread has one that is brought back to what it was
 *   forks   children are made, which use gm, too
 *
 * No two live blocks share a byte; what was written to a block is read back, also while what was freed is still written to; a thread's
 * context stays its own; accounts are never negative; in the end nothing is held. It prints how many requests were met and failed, and how
 * many calls of the driver failed. */
#include "random.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIVE 64
#define POOLS 3
#define STATE 32 /* blocks of a pool that is brought back to what it was */

static atomic_ulong met, failed;
static atomic_uint marks = 1;

/* All live blocks, of all threads. */
static struct range {
	uint64_t begin, end;
} live[THREADS * (LIVE + STATE)];
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

/* A std::function as libstdc++ lays it out. */
struct any {
	void *word[2];
};
struct function {
	struct any data;
	bool (*manager)(struct any *to, const struct any *from, int operation);
	bool (*invoker)(const struct any *data, void **stream);
};

static bool copy_any(struct any *to, const struct any *from, int operation)
{
	if (operation == 2) /* clone */
		*to = *from;
	return false;
}

struct worker {
	uint64_t id;
	struct draws draws;
	struct block blocks[LIVE];
	int count;
	int begun[POOLS]; /* times */
	bool retained;
	char snapshot[1 << 18];
	struct gm_block described[2048];
};

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
	return 4 + (draw(&w->draws, 4) ? draw(&w->draws, UINT64_C(1) << (6 + draw(&w->draws, 17))) : draw(&w->draws, MIB << draw(&w->draws, 6)));
}

static _Thread_local struct worker *asking; /* for a block */

static void get(struct worker *w)
{
	struct block b = {.size = size_of_request(w), .device = (int)draw(&w->draws, job.devices), .stream = (int)draw(&w->draws, job.streams)};
	asking = w;
	GM(w, b.p = draw(&w->draws, 2) ? gm_try_malloc(b.size, b.device, stream_of(&b)) : gm_malloc((ssize_t)b.size, b.device, stream_of(&b)));
	asking = NULL;
	if (!b.p) {
		char why[400];
		CHECK(gm_last_error(why, sizeof why) > 0 && why[0]);
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
	CUstream other = streams[b->device][draw(&w->draws, job.streams)];
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(event, stream_of(b)));
	OK(cuStreamWaitEvent(other, event, 0));
	OK(cuEventDestroy_v2(event));
	GM(w, gm_record_stream(b->p, other));
	OK(cuCtxSetCurrent(contexts[b->device]));
	write_marks(b, other);
}

/* give_at frees a block, to which a stream may still write. */
static void give_at(struct worker *w, int i)
{
	struct block b = w->blocks[i];
	w->blocks[i] = w->blocks[--w->count];
	read_marks(&b);
	b.mark = 0xdead0000;
	if (draw(&w->draws, 3) == 0)
		lend(w, &b);
	else if (draw(&w->draws, 2))
		write_marks(&b, stream_of(&b));
	leave(at(b.p));
	GM(w, gm_free(b.p, (ssize_t)b.size, b.device, stream_of(&b)));
}

static void give(struct worker *w) { give_at(w, (int)draw(&w->draws, (uint64_t)w->count)); }

/* make_room frees a block of the thread whose request found no room, now and then, and makes calls fail again. */
static size_t make_room(int device, size_t size, void *stream)
{
	struct worker *w = asking;
	CUcontext before;
	size_t freed = 0;
	(void)stream;
	CHECK(size);
	if (!w || !draw(&w->draws, 4))
		return 0;
	fake_faults(0, CUDA_SUCCESS);
	OK(cuCtxGetCurrent(&before));
	for (int i = 0; !freed && i < w->count; i++)
		if (w->blocks[i].device == device) {
			freed = w->blocks[i].size;
			give_at(w, i);
		}
	OK(cuCtxSetCurrent(before));
	fake_faults((unsigned)job.rate, (CUresult)job.error);
	return freed;
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
	GM(w, check_account((int)draw(&w->draws, job.devices)));
	GM(w, size = gm_snapshot(w->snapshot, sizeof w->snapshot));
	CHECK(size >= 2 && w->snapshot[0] == '[');
	if (size < sizeof w->snapshot)
		CHECK(w->snapshot[size - 1] == ']' && strlen(w->snapshot) == size);
	if (w->count) {
		const struct block *b = &w->blocks[draw(&w->draws, (uint64_t)w->count)];
		char *base = NULL;
		int device = -1;
		GM(w, base = gm_base_alloc((char *)b->p + b->size / 2, &size));
		CHECK(base == b->p && size >= b->size);
		GM(w, device = gm_device_of(b->p));
		CHECK(device == b->device);
		struct gm_block found, *all = w->described;
		int64_t n = 0, room = (int64_t)(sizeof w->described / sizeof *all), before = -1;
		GM(w, device = gm_find(b->device, b->p, &found));
		CHECK(!device && found.requested == (int64_t)b->size && found.size >= found.requested && found.state == GM_USED);
		GM(w, n = gm_blocks(b->device, all, (size_t)room));
		for (int64_t i = 0; i < n && i < room; i++) {
			CHECK(i == 0 || all[i].address > all[i - 1].address);
			before = all[i].address <= at(b->p) ? i : before;
		}
		CHECK(n > 0 && (n > room || (before >= 0 && all[before].address == at(b->p) && all[before].requested == found.requested)));
	}
}

/* Bytes of addresses that have memory, as the observers are told. */
static atomic_llong observed[DEVICES];

static void observe(int device, int mapped, uint64_t address, uint64_t size, uint64_t stream)
{
	CHECK(device >= 0 && device < (int)job.devices && address && size && (stream < 3 || stream > 4096));
	CHECK(atomic_fetch_add(&observed[device], mapped ? (long long)size : -(long long)size) >= (mapped ? 0 : (long long)size));
}

static void observe_too(int device, int mapped, uint64_t address, uint64_t size, uint64_t stream)
{
	observe(device, mapped, address, size, stream);
}

/* share opens a block in the process that has it, which pieces of memory allow. */
static void share(struct worker *w)
{
	static _Thread_local char handle[1 << 16];
	const struct block *b = &w->blocks[draw(&w->draws, (uint64_t)w->count)];
	size_t offset = draw(&w->draws, b->size), n = 0;
	char *p[2] = {0}, why[400];
	GM(w, n = gm_share((char *)b->p + offset, handle, sizeof handle));
	if (n > sizeof handle)
		return;
	CHECK(n || gm_last_error(why, sizeof why) > 0);
	if (n && draw(&w->draws, 8) == 0)
		handle[draw(&w->draws, n)] ^= 1;
	for (int i = 0; n && i < 2; i++) {
		GM(w, p[i] = gm_open_shared(handle, n, b->device));
		CHECK(p[i] || gm_last_error(why, sizeof why) > 0);
	}
	CHECK(!p[0] || !p[1] || p[0] == p[1]);
	for (int i = 0; i < 2; i++)
		GM(w, gm_close_shared(p[i]));
}

static void change(struct worker *w)
{
	int device = (int)draw(&w->draws, job.devices);
	switch (draw(&w->draws, 7)) {
	case 5:
		GM(w, gm_mark_peak(device));
		GM(w, CHECK(gm_marked_peak(device) >= 0));
		break;
	case 4:
		GM(w, gm_on_full(draw(&w->draws, 2) ? make_room : NULL));
		break;
	case 3:
		GM(w, gm_observe_segments(draw(&w->draws, 2) ? observe : observe_too));
		break;
	case 0:
		GM(w, gm_memory_fraction(draw(&w->draws, 2) ? 1 : 0.6, device));
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

/* A pool that is retained, and has blocks, serves the default pool when there is no more memory. */
static void retain(struct worker *w)
{
	int uses = 0;
	if (w->retained) {
		GM(w, gm_release_pool(0, 9, 0));
		w->retained = false;
		GM(w, gm_reset_pool(0, 9, 0));
		return;
	}
	GM(w, uses = gm_retain_pool(0, 9, 0));
	if (uses)
		return;
	w->retained = true;
	GM(w, gm_pool_use_on_oom(0, 9, 0, (int)draw(&w->draws, 2)));
	GM(w, gm_begin_pool(0, 9, 0, NULL));
	GM(w, uses = gm_pool_uses(0, 9, 0));
	CHECK(uses == 1 || uses == 2);
	CHECK(uses == 1 || gm_had_pools(0));
	if (uses == 1) /* it could not be begun */
		return;
	if (w->count < LIVE)
		get(w);
	GM(w, gm_end_pool(0, 9, 0));
	GM(w, gm_release_pool(0, 9, 0));
}

/* Plans may come and go at any time. */
static void iteration(struct worker *w)
{
	int state = -1;
	GM(w, state = gm_iteration(0, (int)draw(&w->draws, 4) > 0));
	CHECK(state >= -1 && state <= GM_FOLLOWED);
}

static void pool(struct worker *w)
{
	int which = (int)draw(&w->draws, POOLS);
	if (draw(&w->draws, 3) == 0) {
		retain(w);
		return;
	}
	if (draw(&w->draws, 2)) {
		end_pool(w, which);
		return;
	}
	GM(w, gm_begin_pool(0, 7, (uint64_t)which, NULL));
	w->begun[which]++;
}

/* The live blocks of a pool for one thread's requests, and what they are brought back to. */
struct state {
	struct gm_live live[STATE];
	int64_t count;
};

static bool of_thread(const struct any *data, void **stream)
{
	(void)stream;
	return pthread_equal(pthread_self(), (pthread_t)data->word[0]);
}

static void enter_state(const struct state *s)
{
	for (int i = 0; i < s->count; i++)
		enter(s->live[i].address, s->live[i].address + (uint64_t)s->live[i].size);
}

static void leave_state(const struct state *s)
{
	for (int i = 0; i < s->count; i++)
		leave(s->live[i].address);
}

static bool in_state(const struct state *s, const struct gm_live *b)
{
	for (int i = 0; i < s->count; i++)
		if (s->live[i].address == b->address && s->live[i].size == b->size && s->live[i].stream == b->stream)
			return true;
	return false;
}

static void check_state(struct worker *w, const struct state *want)
{
	struct state got;
	GM(w, got.count = gm_pool_live(0, 8, w->id, got.live, STATE));
	CHECK(got.count == want->count);
	for (int i = 0; i < got.count; i++)
		CHECK(in_state(want, &got.live[i]));
}

/* change_state frees blocks and allocates others. */
static void change_state(struct worker *w, struct state *s)
{
	for (int i = 0; i < STATE / 2; i++) {
		size_t size = size_of_request(w);
		CUstream stream = streams[0][draw(&w->draws, job.streams)];
		void *p = NULL;
		if (s->count && draw(&w->draws, 3) == 0) {
			struct gm_live *b = &s->live[draw(&w->draws, (uint64_t)s->count)];
			leave(b->address);
			GM(w, gm_free((void *)(uintptr_t)b->address, 0, 0, NULL));
			*b = s->live[--s->count];
		} else {
			GM(w, p = gm_try_malloc(size, 0, stream));
		}
		if (!p)
			continue;
		enter(at(p), at(p) + size);
		s->live[s->count++] = (struct gm_live){at(p), (int64_t)size, (uint64_t)(uintptr_t)stream};
	}
}

static void restore(struct worker *w)
{
	struct function filter = {.data = {{(void *)pthread_self()}}, .manager = copy_any, .invoker = of_thread};
	struct state states[2] = {0};
	int64_t none;
	GM(w, gm_begin_pool(0, 8, w->id, &filter));
	GM(w, none = gm_pool_live(0, 8, w->id, NULL, 0));
	if (none) {
		CHECK(none == -1); /* it could not be begun */
		return;
	}
	change_state(w, &states[0]);
	check_state(w, &states[0]);
	states[1] = states[0];
	change_state(w, &states[1]);
	check_state(w, &states[1]);
	int now = 1, failed = 0;
	for (int i = 0; i < 4 && !failed; i++) {
		leave_state(&states[now]);
		GM(w, failed = gm_pool_restore(0, 8, w->id, states[!now].live, (size_t)states[!now].count));
		now ^= !failed;
		enter_state(&states[now]);
		check_state(w, &states[now]);
	}
	leave_state(&states[now]);
	for (int i = 0; i < states[now].count; i++)
		GM(w, gm_free((void *)(uintptr_t)states[now].live[i].address, 0, 0, NULL));
	GM(w, gm_end_pool(0, 8, w->id));
	GM(w, gm_release_pool(0, 8, w->id));
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
		if (draw(&w->draws, 2))
			_exit(0);
		exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void *work(void *number)
{
	struct worker *w = calloc(1, sizeof *w);
	CHECK(w);
	w->id = *(uint64_t *)number;
	start_draws(&w->draws, w->id);
	GM(w, gm_init((int)job.devices); CHECK(gm_version()[0]));
	for (uint64_t i = 0; i < job.ops; i++) {
		uint64_t what = draw(&w->draws, 100);
		if (what < 50 && w->count < LIVE)
			get(w);
		else if (what < 94 && w->count)
			give(w);
		else if (what < 95)
			ask(w);
		else if (what == 95)
			iteration(w);
		else if (what == 96 && w->count)
			share(w);
		else if (what == 97)
			change(w);
		else if (what == 98 && job.pools && w->id == 0)
			pool(w);
		else if (what == 98 && !job.pools)
			restore(w);
		else if (what == 99 && job.forks && w->id == 0)
			spawn(w);
	}
	while (w->count)
		give(w);
	for (int i = 0; i < POOLS; i++)
		end_pool(w, i);
	if (w->retained)
		retain(w);
	free(w);
	return NULL;
}

int main(int argc, char **argv)
{
	(void)argc;
	read_arguments(argv + 1);
	alarm(120);
	start_devices();
	gm_observe_segments(observe);
	gm_on_full(make_room);
	run_threads(work);
	for (int d = 0; d < (int)job.devices; d++) {
		OK(cuCtxSetCurrent(contexts[d]));
		OK(cuCtxSynchronize());
		gm_memory_fraction(1, d);
	}
	gm_reset();
	fake_faults(0, CUDA_SUCCESS);
	gm_reset(); /* what faults and other devices were in the way of */
	for (int d = 0; d < (int)job.devices; d++) {
		struct gm_stats s = stats_of(d);
		CHECK(s.allocation[GM_ALL].current == 0 && s.requested_bytes[GM_ALL].current == 0);
		CHECK(s.allocated_bytes[GM_ALL].current == 0 && s.active_bytes[GM_ALL].current == 0);
		CHECK(s.reserved_bytes[GM_ALL].current == 0 && s.segment[GM_ALL].current == 0 && observed[d] == 0);
	}
	printf("%lu %lu %lu\n", met, failed, fake_fault_count());
	return 0;
}
