/* Jobs of a memory server, which may put them to sleep at any moment: threads that fill, move and check their memory, for some milliseconds,
 * in blocks of up to a size; children are forked meanwhile. A job that is "still" fills its memory, writes a line, waits for one, checks, and
 * waits again; one that is "shared" or "captured" does the same and may not sleep. One that is "storing" has an object in a store besides; one that is
 * "first" has opened the store before it had any memory, and has not named it; one that is "loading" loads and launches code after the line, and one that
 * is "alone" has nothing but a store. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, BLOCKS = 12 };

static struct timespec end;
static size_t largest;

struct block {
	char *p;
	size_t size;
	unsigned mark;
};

static int over(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec > end.tv_nsec);
}

static unsigned next(unsigned *state) { return *state = *state * 1664525 + 1013904223; }

/* verify reads a word near the begin and one at the end. */
static void verify(const struct block *b)
{
	unsigned first, last;
	OK(cuMemcpyDtoH_v2(&first, at(b->p), 4));
	OK(cuMemcpyDtoH_v2(&last, at(b->p + b->size - 4), 4));
	CHECK(first == b->mark && last == b->mark);
}

static void make(struct block *b, unsigned *state, CUstream s)
{
	b->size = (4 + (size_t)next(state) % largest) / 4 * 4;
	if (next(state) % 2)
		b->size = b->size % 100000 / 4 * 4 + 4;
	CHECK((b->p = gm_try_malloc(b->size, 0, s)));
	b->mark = next(state);
	OK(cuMemsetD32Async(at(b->p), b->mark, b->size / 4, s));
	OK(cuStreamSynchronize(s));
}

static void *work(void *number)
{
	unsigned state = (unsigned)(size_t)number;
	struct block blocks[BLOCKS] = {0};
	CUstream s;
	start(0);
	OK(cuStreamCreate(&s, 1));
	while (!over()) {
		struct block *b = &blocks[next(&state) / 64 % BLOCKS];
		if (!b->p) {
			make(b, &state, s);
		} else if (next(&state) / 64 % 2) {
			verify(b);
		} else {
			verify(b);
			gm_free(b->p, 0, 0, NULL);
			b->p = NULL;
		}
	}
	for (int i = 0; i < BLOCKS; i++)
		if (blocks[i].p) {
			verify(&blocks[i]);
			gm_free(blocks[i].p, 0, 0, NULL);
		}
	return NULL;
}

/* fork_one forks a child as a data loader does, which outlives what its parent does meanwhile. */
static pid_t fork_one(void)
{
	pid_t child = fork();
	if (!child) {
		usleep(50000);
		_exit(gm_try_malloc(1000, 0, NULL) ? 1 : 0);
	}
	return child;
}

/* What may not sleep: a job that captures a graph, for now, and one that has passed memory on, for good. */
static void refuse(const char *how, const struct block *b)
{
	static CUstream s;
	CUmemGenericAllocationHandle handle;
	if (strcmp(how, "shared") == 0) {
		OK(cuMemRetainAllocationHandle(&handle, b->p));
	} else if (strcmp(how, "captured") == 0) {
		OK(cuStreamCreate(&s, 1));
		OK(cuStreamBeginCapture_v2(s, 2));
	} else if (strcmp(how, "after") == 0) {
		CUgraph graph;
		OK(cuStreamEndCapture(s, &graph));
	}
}

static int64_t store, object;

/* put_object has a store with one object, which is not in use. */
static void put_object(const char *name)
{
	struct gm_store_options options = {.host = 64 * MIB, .name = name};
	void *p;
	CHECK((store = gm_store_open(0, &options)) && (object = gm_store_create(store, 4 * MIB, NULL, &p)));
	OK(cuMemsetD32Async(at(p), 77, MIB, NULL));
	OK(gm_store_put(store, object, INT64_MAX, NULL));
}

static void get_object(void)
{
	struct block b = {.size = 4 * MIB, .mark = 77};
	CHECK((b.p = gm_store_get(store, object, 0, NULL)));
	verify(&b);
	OK(gm_store_close(store));
}

static void load_code(void)
{
	enum { MODULES = 30 }; /* 3 MiB each on the fake driver */
	CUmodule module;
	CUfunction f;
	for (int i = 0; i < MODULES; i++) {
		OK(cuModuleLoadData(&module, "code"));
		OK(cuModuleGetFunction(&f, module, "kernel"));
	}
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

static void still(const char *how, unsigned count)
{
	struct block *blocks = calloc(count, sizeof *blocks);
	unsigned state = 1;
	char line[8];
	if (strcmp(how, "alone") == 0)
		CHECK((store = gm_store_open(0, NULL)));
	start(0);
	if (strcmp(how, "first") == 0)
		put_object(NULL);
	for (unsigned i = 0; i < count; i++)
		make(&blocks[i], &state, NULL);
	refuse(how, &blocks[0]);
	if (strcmp(how, "storing") == 0)
		put_object("objects");
	printf("ready\n");
	fflush(stdout);
	CHECK(fgets(line, sizeof line, stdin));
	if (strcmp(how, "captured") == 0)
		refuse("after", NULL);
	if (strcmp(how, "loading") == 0)
		load_code();
	if (object)
		get_object();
	for (unsigned i = 0; i < count; i++)
		verify(&blocks[i]);
	printf("same\n");
	fflush(stdout);
	fgets(line, sizeof line, stdin);
	free(blocks);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	CHECK(argc == 4);
	unsigned amount = (unsigned)atoi(argv[2]);
	largest = (size_t)atol(argv[3]);
	if (strcmp(argv[1], "work") != 0) {
		still(argv[1], amount);
		return 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += amount / 1000;
	end.tv_nsec += amount % 1000 * 1000000;
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(i + 1));
	while (!over()) {
		int status;
		pid_t child = fork_one();
		CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	gm_reset();
	return 0;
}
