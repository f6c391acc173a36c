/* Eight threads share a swapper that is too small for all of them. Each has a stream, and memory of the allocator. */
#include "swap.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 8
#define ROUNDS 300
#define LIVE 3

static atomic_int refused, moved;

struct tensor { void *p; size_t size; unsigned word; int64_t ticket; };

static void away(struct tensor *t, CUstream s)
{
	t->p = gm_try_malloc(t->size, 0, s);
	CHECK(t->p);
	fill(t->p, t->word, t->size, s);
	t->ticket = gm_swap_out(0, t->p, t->size, s);
	if (!t->ticket) {
		CHECK(says("host memory is full"));
		refused++;
		return; /* it stays where it is */
	}
	OK(gm_swap_left(0, t->ticket, s));
	gm_free(t->p, 0, 0, s);
	t->p = NULL;
}

static void back(struct tensor *t, CUstream s)
{
	if (!t->word)
		return;
	if (!t->p) {
		t->p = gm_try_malloc(t->size, 0, s);
		CHECK(t->p);
		OK(gm_swap_in(0, t->ticket, t->p, s));
		OK(gm_swap_ready(0, t->ticket, s));
		OK(gm_swap_drop(0, t->ticket));
		moved++;
	}
	OK(cuStreamSynchronize(s));
	CHECK(holds(t->p, t->word, t->size));
	gm_free(t->p, 0, 0, s);
}

static void *work(void *argument)
{
	struct tensor live[LIVE] = {{0}};
	unsigned me = (unsigned)(size_t)argument;
	start(0);
	CUstream s = stream();
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct tensor *t = &live[i * 7 % LIVE];
		back(t, s);
		*t = (struct tensor){.size = 4 * (1 + i * 7919 % 60000), .word = (me << 16) + i + 1};
		away(t, s);
	}
	for (int i = 0; i < LIVE; i++)
		back(&live[i], s);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	OK(gm_swap_open(0, 2 * MIB, 0));
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	struct gm_swap_stats s = swap_stats(0);
	CHECK(s.host_bytes == 0 && s.copies_in == moved && s.copies_out == moved && s.host_peak <= 2 * (int64_t)MIB);
	CHECK(refused > 0 && moved > THREADS * ROUNDS / 20);
	gm_swap_close(0);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current == 0);
	return 0;
}
