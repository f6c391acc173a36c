/* Random moves of tensors to the host and back, by many threads on several devices and streams, while calls of the driver fail.
 *
 * usage: random_swap KEY=VALUE..., those of random.c
 *
 * A tensor that is back is what it was, as is one whose move failed; what failed can be done later; in the end nothing is held. It prints how
 * many moves were made and failed, and how many calls of the driver failed. */
#include "random.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#define LIVE 16
#define HOST_BYTES (16 * MIB)

static atomic_ulong moved, failed;
static atomic_uint marks = 1;

struct tensor {
	CUdeviceptr p;
	size_t size;
	unsigned mark;
	int device;
	int64_t ticket; /* 0 while it is on the device */
	CUstream last;  /* that wrote to it */
};

struct worker {
	uint64_t id;
	struct draws draws;
	struct tensor tensors[LIVE];
	int count;
};

static CUstream any_stream(struct worker *w, const struct tensor *t) { return streams[t->device][draw(&w->draws, STREAMS)]; }

static void *pointer(const struct tensor *t) { return (void *)(uintptr_t)t->p; }

static void use(const struct tensor *t) { OK(cuCtxSetCurrent(contexts[t->device])); }

/* verify looks at a tensor once all streams are done. */
static void verify(const struct tensor *t)
{
	size_t words = t->size / 4, places[] = {0, words / 2, words - 1};
	use(t);
	OK(cuCtxSynchronize());
	for (int i = 0; i < 3; i++) {
		unsigned word;
		OK(cuMemcpyDtoH_v2(&word, t->p + 4 * places[i], 4));
		CHECK(word == t->mark);
	}
}

/* out moves a tensor to the host; on a failure it stays, and is whole. */
static void out(struct worker *w, struct tensor *t)
{
	CUstream s = any_stream(w, t);
	use(t);
	OK(cuMemsetD32Async(t->p, t->mark, t->size / 4, s));
	GM(w, t->ticket = gm_swap_out(t->device, pointer(t), t->size, s));
	int left = -1;
	if (t->ticket > 0)
		GM(w, left = gm_swap_left(t->device, t->ticket, s));
	if (left) {
		failed++;
		verify(t);
		if (t->ticket > 0)
			OK(gm_swap_drop(t->device, t->ticket));
		t->ticket = 0;
		return;
	}
	moved++;
	t->last = s;
	use(t);
	OK(cuMemsetD32Async(t->p, 0xdeadbeef, t->size / 4, s));
}

static int in_once(struct worker *w, const struct tensor *t, CUstream s, bool faults)
{
	int result = -1;
	if (!faults) {
		use(t);
		return gm_swap_in(t->device, t->ticket, pointer(t), s) || gm_swap_ready(t->device, t->ticket, s);
	}
	GM(w, result = gm_swap_in(t->device, t->ticket, pointer(t), s));
	if (result == 0)
		GM(w, result = gm_swap_ready(t->device, t->ticket, s));
	return result;
}

/* in brings a tensor back, behind what overwrote it. What failed works without faults. */
static void in(struct worker *w, struct tensor *t)
{
	CUstream s = any_stream(w, t);
	use(t);
	if (s != t->last)
		OK(cuStreamSynchronize(t->last));
	if (in_once(w, t, s, true)) {
		failed++;
		OK(in_once(w, t, s, false));
	}
	int picked = -1;
	if (t->size >= 16) /* words that are all the same, to where others of them are */
		GM(w, picked = gm_swap_words(t->device, (char *)pointer(t) + t->size - 8, pointer(t), 8, 4, 2, s));
	failed += picked < 0 && t->size >= 16;
	verify(t);
	int dropped = -1;
	GM(w, dropped = gm_swap_drop(t->device, t->ticket));
	if (dropped)
		gm_swap_drop(t->device, t->ticket);
	t->ticket = 0;
}

static void make(struct worker *w)
{
	struct tensor *t = &w->tensors[w->count++];
	size_t words = 1 + draw(&w->draws, UINT64_C(1) << (4 + draw(&w->draws, 15)));
	*t = (struct tensor){.size = 4 * words, .mark = marks++, .device = (int)draw(&w->draws, job.devices)};
	use(t);
	OK(cuMemAlloc_v2(&t->p, t->size));
	out(w, t);
}

static void end_one(struct worker *w)
{
	int i = (int)draw(&w->draws, (uint64_t)w->count);
	struct tensor t = w->tensors[i];
	w->tensors[i] = w->tensors[--w->count];
	if (t.ticket)
		in(w, &t);
	else
		verify(&t);
	use(&t);
	OK(cuCtxSynchronize());
	OK(cuMemFree_v2(t.p));
}

/* borrow is called where there is no room on a device, which is always. */
static size_t borrow(int device, size_t size, void *stream)
{
	CHECK(gm_within("gm_") >= 0);
	int result = gm_swap_borrow(device, size, stream);
	CHECK(result == -1 || gm_asked_last());
	return result == 0 ? GM_BORROW : 0;
}

/* in_place has a device write to memory of the host that it uses in place, from two streams. */
static void in_place(struct worker *w)
{
	struct tensor t = {.size = 4 * (1 + draw(&w->draws, MIB / 8)), .mark = marks++, .device = (int)draw(&w->draws, job.devices)};
	CUstream first = any_stream(w, &t), second = any_stream(w, &t);
	void *p = NULL;
	int ahead = -1;
	if (draw(&w->draws, 4) == 0) {
		t.size += MIB;
		GM(w, ahead = gm_swap_lodge(t.device, t.size, first));
	}
	GM(w, p = gm_try_malloc(t.size, t.device, first));
	CHECK(ahead || gm_swap_borrowed(p) == t.device);
	if (!p) {
		failed++;
		return;
	}
	moved++;
	t.p = (CUdeviceptr)(uintptr_t)p;
	int device = gm_swap_borrowed(p);
	CHECK(device == t.device || device == -1); /* where calls fail, the driver serves requests itself */
	use(&t);
	OK(cuMemsetD32Async(t.p, ~t.mark, t.size / 4, first));
	OK(cuStreamSynchronize(first));
	OK(cuMemsetD32Async(t.p, t.mark, t.size / 4, second));
	if (second != first)
		GM(w, gm_record_stream(p, second));
	verify(&t);
	GM(w, gm_free(p, (ssize_t)t.size, t.device, first));
}

static void ask(struct worker *w)
{
	struct gm_swap_stats s;
	char answer[64];
	int device = (int)draw(&w->draws, job.devices), result = 0;
	GM(w, result = gm_swap_get_stats(device, &s));
	if (!result)
		CHECK(s.host_bytes >= 0 && s.host_bytes <= s.host_peak && s.host_peak <= (int64_t)HOST_BYTES);
	GM(w, CHECK(gm_swap_open(device, HOST_BYTES, 0) == -1));
	GM(w, gm_swap_expect(device, (size_t)draw(&w->draws, 2 * HOST_BYTES)));
	GM(w, CHECK(gm_swap_plan("{", 1, answer, sizeof answer) == -1));
	GM(w, CHECK(gm_order("{", 1, answer, sizeof answer) == -1));
	GM(w, CHECK(gm_partition("{", 1, answer, sizeof answer) == -1));
	GM(w, CHECK(gm_swap_left(device, INT64_C(1) << 40, NULL) == -1));
	for (int i = 0; i < w->count; i++)
		if (w->tensors[i].ticket)
			GM(w, gm_swap_copied(w->tensors[i].device, w->tensors[i].ticket));
}

static void *work(void *number)
{
	struct worker *w = calloc(1, sizeof *w);
	CHECK(w);
	w->id = *(uint64_t *)number;
	start_draws(&w->draws, w->id);
	for (uint64_t i = 0; i < job.ops; i++) {
		uint64_t what = draw(&w->draws, 100);
		if (what < 8)
			in_place(w);
		else if (what < 54 && w->count < LIVE)
			make(w);
		else if (what < 97 && w->count)
			end_one(w);
		else
			ask(w);
	}
	while (w->count)
		end_one(w);
	free(w);
	return NULL;
}

int main(int argc, char **argv)
{
	(void)argc;
	read_arguments(argv + 1);
	alarm(120);
	start_devices();
	for (int d = 0; d < (int)job.devices; d++)
		OK(gm_swap_open(d, HOST_BYTES, d));
	for (int d = 0; d < (int)job.devices; d++)
		gm_memory_fraction(0, d);
	gm_on_full(borrow);
	run_threads(work);
	for (int d = 0; d < (int)job.devices; d++) {
		struct gm_swap_stats s;
		OK(cuCtxSetCurrent(contexts[d]));
		OK(cuCtxSynchronize());
		OK(gm_swap_get_stats(d, &s));
		CHECK(s.host_bytes == 0 && s.borrowed_bytes == 0);
		gm_swap_close(d);
	}
	gm_reset();
	printf("%lu %lu %lu\n", moved, failed, fake_fault_count());
	return 0;
}
