/* Requests that find no room have memory of the host, which the device uses in place, until that is used up. */
#include "swap.h"

#include <pthread.h>

enum { LIMIT = 64, HOST = 128, THREADS = 4, ROUNDS = 100 };

static _Atomic int asked;

static size_t borrow(int device, size_t size, void *stream)
{
	CHECK(device == 0 && size);
	asked += gm_asked_last();
	return gm_swap_borrow(device, size, stream) == 0 ? GM_BORROW : 0;
}

static size_t give_up(int device, size_t size, void *stream)
{
	(void)device, (void)size, (void)stream;
	return 0;
}

/* reads_back writes memory in the order of a stream, and reads it back. */
static void reads_back(void *p, size_t size, unsigned word, CUstream s)
{
	fill(p, word, size, s);
	OK(cuStreamSynchronize(s));
	const unsigned *words = p;
	CHECK(words[0] == word && words[size / 4 - 1] == word);
}

static void *use(void *data)
{
	unsigned word = (unsigned)(size_t)data;
	CUcontext ctx;
	CUstream s;
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	OK(cuStreamCreateWithPriority(&s, 1, 0));
	for (int i = 0; i < ROUNDS; i++) {
		size_t size = 4 * (1 + (word = word * 1664525 + 1013904223) % (MIB / 2));
		void *p = gm_try_malloc(size, 0, s);
		CHECK(p && gm_swap_borrowed(p) == 0 && gm_device_of((char *)p + size - 1) == 0);
		reads_back(p, size, word, s);
		gm_free(p, 0, 0, s);
	}
	OK(cuStreamDestroy_v2(s));
	return NULL;
}

/* waits has a request be met by memory that another stream has yet to be waited for: nothing is borrowed. */
static void waits(CUstream s)
{
	void *half = gm_try_malloc(LIMIT / 2 * MIB, 0, NULL), *rest = gm_try_malloc(LIMIT / 4 * MIB, 0, NULL);
	CHECK(half && rest);
	gm_record_stream(half, s);
	fill(half, 7, LIMIT / 2 * MIB, s);
	gm_free(half, 0, 0, NULL);
	void *all = gm_try_malloc(LIMIT * 5 / 8 * MIB, 0, NULL);
	CHECK(all && gm_swap_borrowed(all) < 0);
	gm_free(all, 0, 0, NULL);
	gm_free(rest, 0, 0, NULL);
}

static void one(CUstream s)
{
	struct gm_stats before = stats_of(0);
	void *p = gm_try_malloc(3 * MIB, 0, s);
	CHECK(p && asked == 2 && gm_swap_borrowed(p) == 0 && gm_device_of(p) == 0 && gm_swap_borrowed((char *)p - 1) < 0);
	struct gm_stats after = stats_of(0);
	CHECK(after.allocated_bytes[GM_ALL].current == before.allocated_bytes[GM_ALL].current);
	reads_back(p, 3 * MIB, 0xabcd, s);
	struct gm_block block;
	CHECK(gm_find(0, p, &block) == 0 && block.size == 3 * MIB && block.state == GM_USED);
	size_t size = 0;
	CHECK(gm_base_alloc((char *)p + MIB, &size) == p && size == 3 * MIB);
	CUstream other;
	OK(cuStreamCreateWithPriority(&other, 1, 0));
	gm_record_stream(p, other);
	gm_free(p, 0, 0, s);
	CHECK(gm_swap_borrowed(p) < 0 && gm_device_of(p) < 0);
	struct gm_swap_stats swap;
	OK(gm_swap_get_stats(0, &swap));
	CHECK(swap.borrows == 1 && !swap.borrowed_bytes && swap.borrowed_peak == 3 * MIB);
	OK(cuStreamSynchronize(other));
}

/* ahead has requests have memory of the host that was taken for them, though there is room. */
static void ahead(CUstream s)
{
	struct gm_swap_stats swap;
	OK(gm_swap_lodge(0, 3 * MIB, s));
	OK(gm_swap_lodge(0, 2 * MIB, s)); /* instead */
	OK(gm_swap_get_stats(0, &swap));
	CHECK(swap.borrowed_bytes == 2 * MIB);
	void *other = gm_try_malloc(3 * MIB, 0, s), *p = gm_try_malloc(2 * MIB, 0, s), *next = gm_try_malloc(2 * MIB, 0, s);
	CHECK(other && p && next && gm_swap_borrowed(other) < 0 && gm_swap_borrowed(p) == 0 && gm_swap_borrowed(next) < 0);
	reads_back(p, 2 * MIB, 0x1234, s);
	gm_free(p, 0, 0, s);
	OK(gm_swap_lodge(0, 2 * MIB, s));
	CHECK((p = gm_try_malloc(2 * MIB, 0, NULL)) && gm_swap_borrowed(p) < 0); /* on another stream */
	OK(gm_swap_lodge(0, 0, NULL));
	OK(gm_swap_get_stats(0, &swap));
	CHECK(!swap.borrowed_bytes);
	gm_free(other, 0, 0, s);
	gm_free(p, 0, 0, s);
	gm_free(next, 0, 0, s);
	CHECK(gm_swap_lodge(0, MIB, s) < 0 && gm_swap_lodge(0, 2 * MIB, (void *)2) < 0 && gm_swap_lodge(0, 2 * HOST * MIB, s) < 0 && gm_swap_lodge(1, 2 * MIB, s) < 0);
	CHECK((p = gm_try_malloc(2 * MIB, 0, s)) && gm_swap_borrowed(p) < 0); /* the last call took nothing */
	gm_free(p, 0, 0, s);
	OK(gm_swap_get_stats(0, &swap));
	CHECK(!swap.borrowed_bytes);
}

int main(void)
{
	pthread_t threads[THREADS];
	CUstream s;
	char text[256];
	start(0);
	void *all = gm_try_malloc(LIMIT * MIB, 0, NULL);
	CHECK(all);
	gm_on_full(borrow);
	CHECK(!gm_try_malloc(MIB, 0, NULL)); /* of no swapper */
	OK(gm_swap_open(0, HOST * MIB, 0));
	OK(cuStreamCreateWithPriority(&s, 1, 0));
	gm_free(all, 0, 0, NULL);
	waits(s);
	CHECK((all = gm_try_malloc(LIMIT * MIB, 0, NULL)));
	asked = 1;
	one(s);
	CHECK(!gm_try_malloc(2 * HOST * MIB, 0, NULL) && !gm_try_malloc(MIB, 0, (void *)2)); /* more than there is, and for a stream of each thread */
	CHECK(gm_last_error(text, sizeof text) && strstr(text, "CUDA out of memory"));
	for (size_t i = 0; i < THREADS; i++)
		OK(pthread_create(&threads[i], NULL, use, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
	gm_on_full(give_up);
	CHECK(!gm_try_malloc(MIB, 0, NULL));
	gm_free(all, 0, 0, NULL);
	void *p = gm_try_malloc(MIB, 0, NULL); /* there is room */
	CHECK(p && gm_swap_borrowed(p) < 0);
	gm_free(p, 0, 0, NULL);
	ahead(s);
	CHECK(gm_within("__libc_start_main") && !gm_within("raw_cudnn_convolution"));
	CHECK(gm_within("raw_cudnn|__libc_start_") && gm_within("__libc_start|raw_cudnn") && !gm_within("raw_cudnn||libc_begin"));
	for (int i = 0; i < 3; i++) /* as many searches as are remembered, and one more */
		CHECK(gm_within("__libc_start_main") && !gm_within("x1") && !gm_within("x2") && !gm_within("x3") && !gm_within("x4"));
	gm_on_full(NULL);
	gm_reset();
	OK(cuStreamDestroy_v2(s));
	gm_swap_close(0);
	return 0;
}
