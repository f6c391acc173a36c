/* Measures a store of objects (gm.h) beside the driver's own calls. Usage: store calls | evict | peer | hold GB BYTES | take BYTES N, with
 * LD_LIBRARY_PATH or an absolute path in GM_LIBRARY for libgm.so. Prints lines of a name and a number; times are in microseconds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../internal/libgm/gm.h"

enum { MOST = 20000 };

static int (*mem_alloc)(uint64_t *, size_t), (*mem_free)(uint64_t), (*synchronize)(void), (*fill32)(uint64_t, unsigned, size_t);
static int64_t (*store_open)(int, const struct gm_store_options *), (*store_create)(int64_t, size_t, void *, void **);
static int (*store_close)(int64_t), (*store_put)(int64_t, int64_t, int64_t, void *), (*store_free)(int64_t, int64_t, void *);
static int (*store_stats)(int64_t, struct gm_store_stats *);
static void *(*store_get)(int64_t, int64_t, int, void *);
static size_t (*last_error)(char *, size_t);
static double times[MOST];

static void *symbol(void *library, const char *name)
{
	void *found = dlsym(library, name);
	if (!found) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(1);
	}
	return found;
}

static void check(int good, const char *what)
{
	char text[600] = "";
	if (good)
		return;
	last_error(text, sizeof text);
	fprintf(stderr, "%s failed: %s\n", what, text);
	exit(1);
}

static void load(void)
{
	const char *path = getenv("GM_LIBRARY");
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *gm = dlopen(path ? path : "libgm.so", RTLD_NOW);
	if (!cuda || !gm) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	int (*init)(unsigned) = symbol(cuda, "cuInit");
	int (*retain)(void **, int) = symbol(cuda, "cuDevicePrimaryCtxRetain");
	int (*current)(void *) = symbol(cuda, "cuCtxSetCurrent");
	void *context = NULL;
	mem_alloc = symbol(cuda, "cuMemAlloc_v2");
	mem_free = symbol(cuda, "cuMemFree_v2");
	synchronize = symbol(cuda, "cuCtxSynchronize");
	fill32 = symbol(cuda, "cuMemsetD32_v2");
	store_open = symbol(gm, "gm_store_open");
	store_close = symbol(gm, "gm_store_close");
	store_create = symbol(gm, "gm_store_create");
	store_get = symbol(gm, "gm_store_get");
	store_put = symbol(gm, "gm_store_put");
	store_free = symbol(gm, "gm_store_free");
	store_stats = symbol(gm, "gm_store_get_stats");
	last_error = symbol(gm, "gm_last_error");
	check(!init(0) && !retain(&context, 0) && !current(context), "to begin to use the device");
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* report prints the mean, the median, the 99th of 100 and the most of n times. */
static void report(const char *name, size_t bytes, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += times[i];
	qsort(times, (size_t)n, sizeof *times, ascending);
	printf("%s-%zu %.3f %.3f %.3f %.3f\n", name, bytes, sum / n, times[n / 2], times[n - 1 - n / 100], times[n - 1]);
	fflush(stdout);
}

/* calls: create and free, and get and put of what is there. */
static void calls(void)
{
	static const size_t sizes[] = {128, 16000000, 32000000};
	struct gm_store_options alone = {.server = ""};
	int64_t store = store_open(0, &alone);
	check(store > 0, "gm_store_open");
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		int n = sizes[s] < 1000000 ? 10000 : 300;
		for (int i = 0; i < n; i++) {
			uint64_t p;
			double began = now();
			check(!mem_alloc(&p, sizes[s]) && !mem_free(p), "cuMemAlloc and cuMemFree");
			times[i] = now() - began;
		}
		report("driver", sizes[s], n);
		for (int i = 0; i < n; i++) {
			void *p;
			double began = now();
			int64_t id = store_create(store, sizes[s], NULL, &p);
			check(id && !store_free(store, id, NULL), "gm_store_create and gm_store_free");
			times[i] = now() - began;
		}
		report("store", sizes[s], n);
		void *p;
		int64_t id = store_create(store, sizes[s], NULL, &p);
		for (int i = 0; i < 10000; i++) {
			double began = now();
			store_get(store, id, 1, NULL);
			times[i] = now() - began;
			check(!store_put(store, id, i, NULL), "gm_store_put");
		}
		report("get", sizes[s], 10000);
		store_free(store, id, NULL);
	}
	check(!store_close(store), "gm_store_close");
}

/* warm has so many objects leave the card as will leave it later, so that the host memory for them is pinned. */
static void warm(int64_t store, size_t bytes, int n)
{
	static int64_t ids[MOST];
	void *p;
	for (int i = 0; i < 2 * n; i++) {
		check((ids[i] = store_create(store, bytes, NULL, &p)) > 0, "gm_store_create");
		check(!store_put(store, ids[i], INT64_MAX, NULL), "gm_store_put");
	}
	for (int i = 0; i < 2 * n; i++)
		check(!store_free(store, ids[i], NULL), "gm_store_free");
}

/* back gets all objects in turn, to read or to write them, and prints how many GB a second came back, and how many objects. */
static void back(int64_t store, const int64_t *ids, int n, size_t bytes, int write)
{
	struct gm_store_stats before, after;
	check(!store_stats(store, &before), "gm_store_get_stats");
	double began = now();
	for (int i = 0; i < n; i++) {
		check(store_get(store, ids[i], write, NULL) && !synchronize(), "gm_store_get");
		check(!store_put(store, ids[i], INT64_MAX, NULL), "gm_store_put");
	}
	double all = now() - began;
	check(!store_stats(store, &after), "gm_store_get_stats");
	printf("%s-%zu %.3f %.0f\n", write ? "written" : "read", bytes, (double)(after.fetched_bytes - before.fetched_bytes) / all / 1e3,
	       (double)(after.fetches - before.fetches));
	fflush(stdout);
}

/* evict: objects of a limit, all put; each further one has one leave, to another GPU if one is named. Then all come back, in the order in which
 * they are needed. */
static void evict(const char *peers)
{
	static const size_t sizes[] = {16000000, 32000000};
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		int n = (int)(8000000000 / sizes[s]);
		static int64_t ids[MOST];
		struct gm_store_options o = {.limit = (size_t)n / 2 * (sizes[s] + (2 << 20)), .host = 16000000000, .server = "", .peers = peers, .peer_limit = 16000000000};
		int64_t store = store_open(0, &o);
		check(store > 0, "gm_store_open");
		int timed = 0;
		struct gm_store_stats x;
		warm(store, sizes[s], n / 2 + 1);
		for (int i = 0; i < n; i++) {
			void *p;
			check(!store_stats(store, &x), "gm_store_get_stats");
			int64_t before = x.evictions;
			double began = now();
			ids[i] = store_create(store, sizes[s], NULL, &p);
			times[timed] = now() - began;
			check(ids[i] > 0, "gm_store_create");
			check(!store_stats(store, &x), "gm_store_get_stats");
			timed += x.evictions > before && i >= n * 3 / 4;
			check(!fill32((uint64_t)(uintptr_t)p, (unsigned)i, sizes[s] / 4), "cuMemsetD32");
			check(!store_put(store, ids[i], INT64_MAX, NULL), "gm_store_put");
		}
		report("evict", sizes[s], timed);
		back(store, ids, n, sizes[s], 0); /* pins the host's memory for all */
		back(store, ids, n, sizes[s], 0);
		back(store, ids, n, sizes[s], 1);
		check(!store_stats(store, &x) && (x.peer_bytes > 0) == (peers != NULL), "where objects are");
		check(!store_close(store), "gm_store_close");
	}
}

/* spill has objects of 20 GB leave at once for one of that size, three times, and prints the GB a second: of the create as a whole, and of the
 * eviction in it. */
static void spill(const char *peers)
{
	enum { N = 80 };
	const size_t all = 20000000000, each = all / N;
	struct gm_store_options o = {.limit = all + (1 << 30), .host = 30000000000, .server = "", .peers = peers, .peer_limit = 30000000000};
	int64_t store = store_open(0, &o), ids[N];
	check(store > 0, "gm_store_open");
	void *p;
	for (int i = 0; i < N; i++) {
		check((ids[i] = store_create(store, each, NULL, &p)) > 0, "gm_store_create");
		check(!fill32((uint64_t)(uintptr_t)p, (unsigned)i, each / 4) && !store_put(store, ids[i], INT64_MAX, NULL), "gm_store_put");
	}
	for (int turn = 0; turn < 3; turn++) {
		struct gm_store_stats before, after;
		check(!store_stats(store, &before), "gm_store_get_stats");
		double began = now();
		int64_t large = store_create(store, all, NULL, &p);
		double took = now() - began;
		check(large > 0, "gm_store_create");
		check(!store_stats(store, &after), "gm_store_get_stats");
		printf("spill-%d %.3f %.3f\n", turn, (double)all / took / 1e3,
		       (double)(after.evicted_bytes - before.evicted_bytes) / (double)(after.evicting_ns - before.evicting_ns));
		check(!store_free(store, large, NULL), "gm_store_free");
		began = now();
		for (int i = 0; i < N; i++)
			check(store_get(store, ids[i], 1, NULL) != NULL, "gm_store_get");
		check(!synchronize(), "cuCtxSynchronize");
		printf("return-%d %.3f\n", turn, (double)all / (now() - began) / 1e3);
		for (int i = 0; i < N; i++)
			check(!store_put(store, ids[i], INT64_MAX, NULL), "gm_store_put");
	}
	check(!store_close(store), "gm_store_close");
}

/* hold fills GB of the card with objects that are put, says so, and waits for the end of its input. */
static void hold(double gb, size_t bytes)
{
	struct gm_store_options o = {.host = 100000000000, .name = "hold"};
	int64_t store = store_open(0, &o);
	check(store > 0, "gm_store_open");
	size_t page = 2 << 20, each = (bytes + page - 1) / page * page;
	for (double taken = 0; taken < gb * 1e9; taken += (double)each) {
		void *p;
		int64_t id = store_create(store, bytes, NULL, &p);
		check(id > 0, "gm_store_create");
		check(!fill32((uint64_t)(uintptr_t)p, (unsigned)id, bytes / 4) && !store_put(store, id, INT64_MAX, NULL), "gm_store_put");
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	exit(0);
}

/* take makes n objects, which stay in use, where another process has filled the card. */
static void take(size_t bytes, int n)
{
	struct gm_store_options o = {.name = "take"};
	int64_t store = store_open(0, &o);
	struct timespec joined = {1, 0};
	check(store > 0, "gm_store_open");
	nanosleep(&joined, NULL);
	for (int i = 0; i < n; i++) {
		void *p;
		double began = now();
		int64_t id = store_create(store, bytes, NULL, &p);
		times[i] = now() - began;
		check(id > 0, "gm_store_create");
		check(!fill32((uint64_t)(uintptr_t)p, 1, bytes / 4) && !synchronize(), "cuMemsetD32");
	}
	report("take", bytes, n);
	exit(0);
}

int main(int argc, char **argv)
{
	load();
	if (argc == 2 && !strcmp(argv[1], "calls"))
		calls();
	else if (argc == 2 && !strcmp(argv[1], "evict"))
		evict(NULL);
	else if (argc == 2 && !strcmp(argv[1], "peer"))
		spill("1"), evict("1");
	else if (argc == 4 && !strcmp(argv[1], "hold"))
		hold(atof(argv[2]), (size_t)atoll(argv[3]));
	else if (argc == 4 && !strcmp(argv[1], "take") && atoi(argv[3]) <= MOST)
		take((size_t)atoll(argv[2]), atoi(argv[3]));
	else
		return 2;
	return 0;
}
