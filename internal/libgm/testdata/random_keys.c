/* Random use of memory by keys by many threads, while calls of the driver fail; several such programs run at once, and one is killed.
 *
 * usage: random_keys KEY=VALUE...
 *   seed, threads, ops (of each thread), devices; rate, error and names as for random.c
 *
 * Each key has one size and one pattern, whoever made it: what a thread finds under a key is whole, or it is to make it. A call that fails
 * says why. It prints how many keys were opened and how many were not, and how many calls of the driver failed. */
#include "random.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEYS 5
#define HELD 3 /* by a thread, at most */
#define PAGE (2 * MIB)

static atomic_ulong met, failed;

struct held {
	struct gm_key key;
	int device, number;
};

struct worker {
	struct draws draws;
	struct held held[HELD];
	int count;
};

static size_t size_of_key(int number) { return ((size_t)number + 1) * MIB - 5; }

static size_t pages_of_key(int number) { return (size_of_key(number) + PAGE - 1) / PAGE * PAGE; }

static unsigned char pattern(int device, int number) { return (unsigned char)(17 * number + device + 1); }

static void says_why(void)
{
	char why[400];
	CHECK(gm_last_error(why, sizeof why) > 0 && why[0]);
	failed++;
}

/* whole looks at the ends of a key's memory, and at the last byte of each page. */
static void whole(const struct held *h)
{
	CHECK(h->key.size == pages_of_key(h->number));
	size_t size = size_of_key(h->number);
	OK(cuCtxSetCurrent(contexts[h->device]));
	for (size_t i = 0; i < size; i = i + PAGE < size || i == size - 1 ? i + PAGE : size - 1) {
		unsigned char got;
		OK(cuMemcpyDtoH_v2(&got, at(h->key.address) + i, 1));
		CHECK(got == pattern(h->device, h->number));
	}
}

static void close_key(struct worker *w, int i)
{
	int64_t id = w->held[i].key.id;
	int rc = 0;
	w->held[i] = w->held[--w->count];
	GM(w, rc = gm_key_close(id));
	if (rc)
		says_why();
	CHECK(gm_key_close(id) == -1);
}

/* make fills the memory of a key that had none, and returns whether others have it. */
static bool make(struct worker *w, struct held *h)
{
	static _Thread_local unsigned char contents[KEYS * MIB];
	size_t size = size_of_key(h->number), n = draw(&w->draws, size);
	int first = 0, rest = 0, rc = 0;
	memset(contents, pattern(h->device, h->number), size);
	GM(w, h->key.address = gm_key_make(h->key.id, size));
	if (!h->key.address)
		return false;
	h->key.size = pages_of_key(h->number);
	GM(w, first = gm_key_write(h->key.id, 0, contents, n));
	GM(w, rest = gm_key_write(h->key.id, n, contents + n, size - n));
	if (first || rest || draw(&w->draws, 8) == 0)
		return false;
	GM(w, rc = gm_key_freeze(h->key.id));
	return rc == 0;
}

static void open_key(struct worker *w)
{
	struct held *h = &w->held[w->count];
	char name[20];
	int rc = 0;
	*h = (struct held){.device = (int)draw(&w->draws, job.devices), .number = (int)draw(&w->draws, KEYS)};
	snprintf(name, sizeof name, "key %d", h->number);
	GM(w, rc = gm_key_open(h->device, name, &h->key));
	if (rc) {
		says_why();
		return;
	}
	met++;
	w->count++;
	if (!h->key.address && !make(w, h))
		close_key(w, w->count - 1);
	else
		whole(h);
}

/* spawn makes a child, which has no keys. */
static void spawn(const struct worker *w)
{
	struct gm_key none;
	int status;
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(gm_key_open(0, "key 0", &none) == -1 && !gm_key_make(w->held[0].key.id, MIB) && gm_key_freeze(1) == -1 ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void *work(void *number)
{
	struct worker *w = calloc(1, sizeof *w);
	CHECK(w);
	start_draws(&w->draws, *(uint64_t *)number);
	for (uint64_t i = 0; i < job.ops; i++) {
		uint64_t what = draw(&w->draws, 100);
		if (what < 55 && w->count < HELD)
			open_key(w);
		else if (what < 90 && w->count)
			close_key(w, (int)draw(&w->draws, (uint64_t)w->count));
		else if (what < 98 && w->count)
			whole(&w->held[draw(&w->draws, (uint64_t)w->count)]);
		else if (what == 99 && job.forks)
			spawn(w);
	}
	while (w->count)
		close_key(w, w->count - 1);
	free(w);
	return NULL;
}

int main(int argc, char **argv)
{
	(void)argc;
	read_arguments(argv + 1);
	alarm(120);
	start_devices();
	run_threads(work);
	printf("%lu %lu %lu\n", met, failed, fake_fault_count());
	return 0;
}
