/* Tensors go to the host and come back elsewhere, in the order of streams alone; with an argument also one that is very large. */
#include "swap.h"

#define TENSORS 24
#define ROUNDS 4
#define CHUNK (42 * (int64_t)MIB) /* is pinned at a time: a sixteenth of what may be */

struct tensor {
	void *from, *to;
	size_t size;
	unsigned word;
	int64_t ticket;
	CUstream s; /* in whose order from is used */
};

static struct tensor tensors[TENSORS];

static void make(CUstream *streams)
{
	for (unsigned i = 0; i < TENSORS; i++) {
		struct tensor *t = &tensors[i];
		t->size = 4 * (1 + i * 37813 % 300000);
		t->from = device_memory(t->size);
		t->to = device_memory(t->size);
		t->s = streams[i % 3];
	}
}

/* away fills a tensor, copies it out, and writes over it behind that. */
static void away(struct tensor *t, unsigned word)
{
	t->word = word;
	fill(t->from, word, t->size, t->s);
	t->ticket = gm_swap_out(0, t->from, t->size, t->s);
	CHECK(t->ticket > 0);
	OK(gm_swap_left(0, t->ticket, t->s));
	fill(t->from, ~word, t->size, t->s);
}

/* back copies a tensor in behind what another stream wrote there, and further, to see that what waits for it does. */
static void back(struct tensor *t, CUstream s)
{
	fill(t->to, 0xbad, t->size, s);
	OK(gm_swap_in(0, t->ticket, t->to, s));
	OK(gm_swap_ready(0, t->ticket, s));
	OK(cuMemcpyDtoDAsync_v2(at(t->from), at(t->to), t->size, s));
}

/* round: all go out, and come back in the order in which they went, or in the opposite one, some of them twice. */
static void round_trip(unsigned round, CUstream *streams)
{
	for (unsigned i = 0; i < TENSORS; i++)
		away(&tensors[i], 100 * round + i + 1);
	for (unsigned n = 0; n < TENSORS; n++) {
		struct tensor *t = &tensors[round % 2 ? n : TENSORS - 1 - n];
		back(t, t->s);
		if (n % 5 == 0)
			back(t, t->s);
		OK(gm_swap_drop(0, t->ticket));
		if (n % 3 == 0) { /* into the place of one that may still be read */
			int64_t other = gm_swap_out(0, t->to, t->size, streams[2]);
			CHECK(other > 0);
			OK(gm_swap_drop(0, other));
			CHECK(gm_swap_left(0, other, streams[2]) == -1);
			CHECK(says("no such ticket"));
		}
	}
	OK(cuCtxSynchronize());
	for (unsigned i = 0; i < TENSORS; i++)
		CHECK(holds(tensors[i].to, tensors[i].word, tensors[i].size) && holds(tensors[i].from, tensors[i].word, tensors[i].size));
	CHECK(swap_stats(0).host_bytes == 0);
}

/* A tensor that is larger than what is pinned at a time. */
static void large(CUstream s)
{
	size_t size = 600 * MIB;
	void *p = device_memory(size);
	fill(p, 77, size, s);
	int64_t ticket = gm_swap_out(0, p, size, s);
	CHECK(ticket > 0);
	OK(gm_swap_left(0, ticket, s));
	fill(p, 78, size, s);
	OK(gm_swap_in(0, ticket, p, s));
	OK(gm_swap_ready(0, ticket, s));
	OK(cuCtxSynchronize());
	CHECK(gm_swap_copied(0, ticket) == 1);
	CHECK(holds(p, 77, size));
	OK(gm_swap_drop(0, ticket));
	OK(cuMemFree_v2(at(p)));
	struct gm_swap_stats stats = swap_stats(0);
	CHECK(stats.pinned_bytes >= (int64_t)size && stats.registrations == (stats.pinned_bytes + CHUNK - 1) / CHUNK && stats.pin_ns > 0);
}

/* words picks each third word of a tensor, in the order of the stream. */
static void words(CUstream s)
{
	enum { N = 5 };
	const size_t size = N * 12;
	void *p = device_memory(size), *to = device_memory(N * 4);
	unsigned picked[N];
	for (unsigned i = 0; i < 3 * N; i++)
		fill((char *)p + 4 * i, i, 4, s);
	OK(gm_swap_words(0, to, (char *)p + 4, 12, 4, N, s));
	fill(p, 99, size, s);
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH_v2(picked, at(to), sizeof picked));
	for (unsigned i = 0; i < N; i++)
		CHECK(picked[i] == 3 * i + 1);
	CHECK(gm_swap_words(0, to, p, SIZE_MAX / 2, 4, N, s) == -1 && says("cuMemcpy2DAsync: CUDA_ERROR_INVALID_VALUE"));
	CHECK(gm_swap_words(1, to, p, 12, 4, N, s) == -1 && says("no swapper is open for device 1"));
	OK(cuMemFree_v2(at(p)));
	OK(cuMemFree_v2(at(to)));
}

static void full(CUstream s)
{
	int64_t ticket = gm_swap_out(0, tensors[0].from, tensors[0].size, s);
	CHECK(ticket > 0);
	CHECK(gm_swap_out(0, tensors[0].from, 701 * MIB, s) == 0);
	CHECK(says("host memory is full: 735051776 bytes asked, 4 of 734003200 bytes in use"));
	OK(gm_swap_drop(0, ticket));
}

static void misuse(CUstream s)
{
	struct gm_swap_stats stats;
	CHECK(gm_swap_open(0, MIB, 0) == -1 && says("is open already for device 0"));
	for (int device = -1; device < 40; device += 33) { /* -1, 32 */
		CHECK(gm_swap_open(device, MIB, 0) == -1 && says("The device is not valid"));
		CHECK(gm_swap_out(device, &stats, 4, s) == 0 && gm_swap_left(device, 1, s) == -1 && gm_swap_copied(device, 1) == -1);
		gm_swap_close(device);
	}
	CHECK(gm_swap_open(7, MIB, 0) == -1 && says("open the swapper of device 7: driver: open device 7: cuDeviceGet"));
	CHECK(gm_swap_expect(1, 1) == -1 && says("no swapper is open for device 1"));
	CHECK(gm_swap_get_stats(1, &stats) == -1 && says("no swapper is open for device 1"));
	CHECK(gm_swap_out(1, &stats, 4, s) == 0);
	gm_swap_close(1);
	CHECK(gm_swap_out(0, NULL, 4, s) == 0 && says("address 0"));
	CHECK(gm_swap_out(0, tensors[0].from, 0, s) == 0 && says("0 bytes"));
	CHECK(gm_swap_out(0, tensors[0].from, SIZE_MAX, s) == 0 && says("host memory is full"));
	CHECK(gm_swap_out(0, (void *)16, 4, s) == 0 && says("cuMemcpyDtoHAsync: CUDA_ERROR_INVALID_VALUE"));
	CHECK(gm_swap_out(0, tensors[0].from, 4, (CUstream)(uintptr_t)0xdead0) == 0 && says("CUDA_ERROR"));
	CHECK(gm_swap_copied(0, 12345) == -1 && gm_swap_drop(0, -1) == -1 && gm_swap_ready(0, 0, s) == -1 && says("no such ticket: 0"));
	int64_t ticket = gm_swap_out(0, tensors[0].from, 4, s);
	CHECK(ticket > 0 && gm_swap_ready(0, ticket, s) == -1 && says("nothing was copied in"));
	CHECK(gm_swap_in(0, ticket, (void *)16, s) == -1 && says("CUDA_ERROR_INVALID_VALUE"));
	OK(gm_swap_in(0, ticket, tensors[0].to, s));
	OK(gm_swap_drop(0, ticket));
	CHECK(gm_swap_drop(0, ticket) == -1);
}

/* A stream that is captured goes on being captured. */
static void captured(CUstream s, CUstream other)
{
	CUgraph graph;
	int64_t before = gm_swap_out(0, tensors[0].from, 4, other);
	CHECK(before > 0);
	OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(gm_swap_out(0, tensors[0].from, 4, s) == 0 && says("cuStreamIsCapturing"));
	CHECK(gm_swap_left(0, before, s) == -1 && gm_swap_in(0, before, tensors[0].to, s) == -1);
	OK(gm_swap_in(0, before, tensors[0].to, other));
	CHECK(gm_swap_ready(0, before, s) == -1 && gm_swap_copied(0, before) >= 0);
	OK(cuStreamEndCapture(s, &graph));
	OK(gm_swap_ready(0, before, s));
	OK(gm_swap_drop(0, before));
}

/* The context that is current is the caller's own business. */
static void contexts(void)
{
	CUcontext mine, other, now;
	OK(cuCtxGetCurrent(&mine));
	OK(cuDevicePrimaryCtxRetain(&other, 1));
	CUcontext all[] = {mine, other, NULL};
	for (int i = 0; i < 3; i++) {
		OK(cuCtxSetCurrent(all[i]));
		int64_t ticket = gm_swap_out(0, tensors[1].from, 4, tensors[1].s);
		CHECK(ticket > 0);
		OK(gm_swap_left(0, ticket, tensors[1].s));
		OK(gm_swap_in(0, ticket, tensors[1].to, tensors[1].s));
		OK(gm_swap_ready(0, ticket, tensors[1].s));
		OK(gm_swap_drop(0, ticket));
		OK(cuCtxGetCurrent(&now));
		CHECK(now == all[i]);
	}
	OK(cuCtxSetCurrent(mine));
	OK(cuDevicePrimaryCtxRelease_v2(1));
}

int main(int argc, char **argv)
{
	(void)argv;
	start(0);
	OK(gm_swap_open(0, 700 * MIB, 1));
	CUstream streams[3] = {stream(), stream(), NULL};
	make(streams);
	for (unsigned round = 1; round <= ROUNDS; round++)
		round_trip(round, streams);
	struct gm_swap_stats stats = swap_stats(0);
	CHECK(stats.registrations > 0 && stats.pinned_bytes == stats.registrations * CHUNK && stats.arena_bytes == 700 * (int64_t)MIB);
	CHECK(stats.copies_out == ROUNDS * (TENSORS + TENSORS / 3) && stats.copies_in == ROUNDS * (TENSORS + 5));
	CHECK(stats.out_busy_ns > 0 && stats.in_busy_ns > 0 && stats.host_peak < stats.bytes_out && stats.bytes_in > stats.host_peak);
	misuse(streams[0]);
	captured(streams[0], streams[1]);
	contexts();
	full(streams[0]);
	words(streams[0]);
	if (argc > 1)
		large(streams[0]);
	gm_swap_close(0);
	CHECK(gm_swap_out(0, tensors[0].from, 4, NULL) == 0 && says("no swapper is open for device 0"));
	OK(gm_swap_open(0, MIB, 0));
	away(&tensors[0], 5); /* closed with a ticket, whose copy still goes on */
	gm_swap_close(0);
	for (int i = 0; i < TENSORS; i++) {
		OK(cuMemFree_v2(at(tensors[i].from)));
		OK(cuMemFree_v2(at(tensors[i].to)));
	}
	return 0;
}
