/* One of several clients of a memory server, which together exceed their cards, and are put to sleep and killed meanwhile.
 *
 * usage: random_served SEED DEVICES DEMAND QUOTA OBJECTS
 *
 * DEMAND bounds what it has of each device at a time, in MiB; QUOTA is the server's, 0 if there is none; OBJECTS is 0 for no stores. It prints
 * "ready", and for each line "round": a thread takes, fills, checks and frees memory, and another does so with objects and keys. Then all
 * is quiet, and it prints the bytes of each of two devices that it has made for keys and has open, and how many keys found no room meanwhile. At "free" it
 * gives up all memory and prints the same; at the end of the input it ends. */
#include "check.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { DEVICES = 2, BLOCKS = 10, OBJECTS = 6, IN_USE = 2, KEYS = 4, NO_CONTEXT = 4 };

struct block { /* memory that is full of a word */
	char *p;
	size_t size;
	unsigned word;
	int device;
	int64_t id; /* of an object */
	bool used;  /* an object that was not put */
};

struct worker {
	uint64_t state;
	CUstream streams[DEVICES];
};

static size_t demand, quota;
static int devices;
static bool storing;
static CUcontext contexts[DEVICES];
static struct worker taker, keeper;
static struct block blocks[BLOCKS], objects[OBJECTS];
static size_t requested[DEVICES], pages[DEVICES]; /* of blocks, in bytes: as asked for, and in whole pages */
static int64_t stores[DEVICES];
static struct gm_key keys[DEVICES];
static size_t made[DEVICES]; /* by this process, of the key that is open */
static int no_room;

static uint64_t draw(struct worker *w, uint64_t below)
{
	w->state = w->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (w->state >> 33) % below;
}

static size_t whole(size_t size) { return (size + 2 * MIB - 1) / (2 * MIB) * 2 * MIB; }

/* failed ends the program: a call did not do what it should have. */
static void failed(const char *what, size_t size, int device)
{
	char why[600];
	gm_last_error(why, sizeof why);
	fprintf(stderr, "%s of %zu bytes of device %d, which has %zu of %zu, failed: %s\n", what, size, device, pages[device], demand, why);
	exit(1);
}

static void fill(struct worker *w, struct block *b)
{
	b->word = (unsigned)draw(w, 1 << 30);
	OK(cuCtxSetCurrent(contexts[b->device]));
	OK(cuMemsetD32Async(at(b->p), b->word, b->size / 4, w->streams[b->device]));
}

/* verify reads both ends, and some words between. */
static void verify(struct worker *w, const struct block *b)
{
	static _Thread_local unsigned words[1 << 16];
	size_t n = b->size / 4 < 1 << 16 ? b->size / 4 : 1 << 16, places[] = {0, draw(w, b->size / 4 - n + 1), b->size / 4 - n};
	OK(cuCtxSetCurrent(contexts[b->device]));
	OK(cuStreamSynchronize(w->streams[b->device]));
	for (int i = 0; i < 3; i++) {
		OK(cuMemcpyDtoH_v2(words, at(b->p) + 4 * places[i], 4 * n));
		for (size_t j = 0; j < n; j++)
			CHECK(words[j] == b->word);
	}
}

/* within checks that the server's quota holds. */
static void within(int device)
{
	CHECK(!quota || (size_t)stats_of(device).reserved_bytes[GM_ALL].peak <= quota);
}

/* take asks for memory, which is there unless the quota is in the way, of which half may be the unused rest of pieces. */
static void take(struct block *b)
{
	struct worker *w = &taker;
	int d = (int)draw(w, (uint64_t)devices);
	size_t size = 4 * (1 + draw(w, draw(w, 3) ? demand / 12 : 40000));
	if (pages[d] + whole(size) > demand)
		return;
	*b = (struct block){.size = size, .device = d, .p = gm_try_malloc(size, d, w->streams[d])};
	within(d);
	if (!b->p && (!quota || 2 * (pages[d] + whole(size)) <= quota))
		failed("a request", size, d);
	if (!b->p)
		return;
	CHECK(!quota || requested[d] + size <= quota);
	requested[d] += size;
	pages[d] += whole(size);
	fill(w, b);
}

static void give(struct block *b)
{
	verify(&taker, b);
	gm_free(b->p, (ssize_t)b->size, b->device, taker.streams[b->device]);
	requested[b->device] -= b->size;
	pages[b->device] -= whole(b->size);
	b->p = NULL;
}

/* await waits for the work of a thread. */
static void await(const struct worker *w)
{
	for (int d = 0; d < devices; d++) {
		OK(cuCtxSetCurrent(contexts[d]));
		OK(cuStreamSynchronize(w->streams[d]));
	}
}

static void doze(struct worker *w)
{
	if (draw(w, 12) == 0)
		usleep((useconds_t)draw(w, 80000));
}

static void *take_and_give(void *ops)
{
	for (size_t n = (size_t)ops; n; n--) {
		struct block *b = &blocks[draw(&taker, BLOCKS)];
		if (!b->p)
			take(b);
		else if (draw(&taker, 3) == 0)
			give(b);
		else if (draw(&taker, 2))
			fill(&taker, b);
		else
			verify(&taker, b);
		doze(&taker);
	}
	if (draw(&taker, 4) == 0)
		gm_reset();
	await(&taker);
	return NULL;
}

static int in_use(void)
{
	int n = 0;
	for (int i = 0; i < OBJECTS; i++)
		n += objects[i].id && objects[i].used;
	return n;
}

static void put(struct block *o)
{
	int64_t next = draw(&keeper, 2) ? INT64_MAX : (int64_t)draw(&keeper, 100);
	OK(gm_store_put(stores[o->device], o->id, next, keeper.streams[o->device]));
	o->used = false;
}

static void create(struct block *o)
{
	void *p;
	int d = (int)draw(&keeper, (uint64_t)devices);
	size_t size = 4 * (1 + draw(&keeper, draw(&keeper, 3) ? MIB : 20000));
	*o = (struct block){.size = size, .device = d, .used = true};
	if ((o->id = gm_store_create(stores[d], size, keeper.streams[d], &p)) <= 0)
		failed("an object", size, d);
	o->p = p;
	fill(&keeper, o);
}

static void get(struct block *o)
{
	int write = (int)draw(&keeper, 2);
	if (gm_store_get(stores[o->device], o->id, write, keeper.streams[o->device]) != o->p)
		failed("getting an object", o->size, o->device);
	o->used = true;
	verify(&keeper, o);
	if (write)
		fill(&keeper, o);
}

static void use_objects(void)
{
	struct gm_store_stats s;
	struct block *o = &objects[draw(&keeper, OBJECTS)];
	if (o->id && o->used) {
		verify(&keeper, o);
		put(o);
	} else if (o->id && draw(&keeper, 4) == 0) {
		OK(gm_store_free(stores[o->device], o->id, keeper.streams[o->device]));
		o->id = 0;
	} else if (in_use() < IN_USE) {
		(o->id ? get : create)(o);
	}
	for (int d = 0; d < devices; d++) {
		OK(gm_store_get_stats(stores[d], &s));
		CHECK(!quota || (size_t)s.card_bytes <= quota);
	}
}

/* open_key opens a key, and makes its memory if there is none, which may find no room. */
static void open_key(int d)
{
	static unsigned char contents[KEYS * MIB], got[KEYS * MIB];
	char name[20];
	int number = (int)draw(&keeper, KEYS);
	size_t size = (size_t)(number + 1) * MIB;
	snprintf(name, sizeof name, "key %d", number);
	OK(gm_key_open(d, name, &keys[d]));
	memset(contents, 17 * number + d + 1, size);
	if (!keys[d].address) {
		if (!(keys[d].address = gm_key_make(keys[d].id, size))) {
			no_room++;
			OK(gm_key_close(keys[d].id));
			keys[d].id = 0;
			return;
		}
		made[d] = whole(size);
		OK(gm_key_write(keys[d].id, 0, contents, size));
		OK(gm_key_freeze(keys[d].id));
	}
	OK(cuCtxSetCurrent(contexts[d]));
	OK(cuMemcpyDtoH_v2(got, at(keys[d].address), size));
	CHECK(memcmp(got, contents, size) == 0);
}

static void close_key(int d)
{
	OK(gm_key_close(keys[d].id));
	keys[d].id = 0;
	made[d] = 0;
}

static void *keep(void *ops)
{
	for (size_t n = (size_t)ops; n; n--) {
		int d = (int)draw(&keeper, (uint64_t)devices);
		if (draw(&keeper, 5) == 0)
			(keys[d].id ? close_key : open_key)(d);
		else if (storing)
			use_objects();
		doze(&keeper);
	}
	await(&keeper);
	return NULL;
}

static void round_of_work(void)
{
	pthread_t threads[2];
	size_t ops = 10 + draw(&taker, 30);
	OK(pthread_create(&threads[0], NULL, take_and_give, (void *)ops));
	OK(pthread_create(&threads[1], NULL, keep, (void *)ops));
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void free_all(void)
{
	for (int i = 0; i < BLOCKS; i++)
		if (blocks[i].p)
			give(&blocks[i]);
	for (int i = 0; i < OBJECTS; i++)
		if (objects[i].id)
			OK(gm_store_free(stores[objects[i].device], objects[i].id, keeper.streams[objects[i].device]));
	for (int d = 0; d < devices; d++) {
		if (keys[d].id)
			close_key(d);
		if (storing)
			OK(gm_store_close(stores[d]));
	}
	gm_reset();
}

static void start_device(int d, uint64_t seed)
{
	struct gm_store_options o = {.host = 64 * MIB};
	int rc = cuDevicePrimaryCtxRetain(&contexts[d], d);
	if (rc == CUDA_ERROR_OUT_OF_MEMORY)
		exit(NO_CONTEXT);
	OK(rc);
	OK(cuCtxSetCurrent(contexts[d]));
	OK(cuStreamCreate(&taker.streams[d], CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&keeper.streams[d], CU_STREAM_NON_BLOCKING));
	o.policy = (const char *const[]){"lru", "latency", "size-lru", "fifo"}[(seed + (uint64_t)d) % 4];
	CHECK(!storing || (stores[d] = gm_store_open(d, &o)) > 0);
}

int main(int argc, char **argv)
{
	char line[16];
	CHECK(argc == 6);
	uint64_t seed = strtoull(argv[1], NULL, 10);
	taker.state = seed * UINT64_C(0x9e3779b97f4a7c15);
	keeper.state = ~taker.state;
	devices = atoi(argv[2]);
	demand = (size_t)atol(argv[3]) * MIB;
	quota = (size_t)atol(argv[4]) * MIB;
	storing = atoi(argv[5]);
	OK(cuInit(0));
	for (int d = 0; d < devices; d++)
		start_device(d, seed);
	gm_init(devices);
	for (int d = 0; d < devices; d++) /* the first request joins the server */
		gm_free(gm_try_malloc(1, d, NULL), 1, d, NULL);
	gm_reset();
	for (printf("ready\n"), fflush(stdout); fgets(line, sizeof line, stdin); fflush(stdout)) {
		if (strcmp(line, "free\n") == 0)
			free_all();
		else
			round_of_work();
		printf("%zu %zu %d\n", made[0], made[1], no_room);
		no_room = 0;
	}
	return 0;
}
