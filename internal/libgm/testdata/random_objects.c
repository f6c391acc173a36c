/* Random use of stores of objects by many threads, while calls of the driver fail.
 *
 * usage: random_objects KEY=VALUE...
 *   seed, threads, ops (of each thread), devices, streams; rate, error and names as for random.c
 *
 * What a thread reads of an object is what it wrote. A call that fails says why. It prints how many calls did what they were asked and how many
 * did not, how many calls of the driver failed, and how many objects left their card. */
#include "random.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define OBJECTS 10 /* of a thread, at most */
#define IN_USE 2

static atomic_ulong met, failed, evictions;
static int64_t stores[DEVICES];

struct object {
	int64_t id;
	void *address;
	size_t words;
	uint32_t word;
	int device, stream, pins;
};

struct worker {
	struct draws draws;
	struct object objects[OBJECTS];
	int count, in_use;
};

static void evicted(void *user, int64_t object)
{
	CHECK(user == stores && object > 0);
	evictions++;
}

/* done counts a call, and looks at the reason of one that failed. It returns whether it did not. */
static bool done(bool good)
{
	char why[600];
	if (good) {
		met++;
		return true;
	}
	CHECK(gm_last_error(why, sizeof why) > 0 && why[0]);
	failed++;
	return false;
}

static CUstream stream_of(const struct object *o) { return streams[o->device][o->stream]; }

static void write_to(struct worker *w, struct object *o)
{
	o->word = (uint32_t)draw(&w->draws, 1 << 30);
	OK(cuCtxSetCurrent(contexts[o->device]));
	OK(cuMemsetD32Async(at(o->address), o->word, o->words, stream_of(o)));
}

static void read_from(struct worker *w, const struct object *o)
{
	size_t places[] = {0, draw(&w->draws, o->words), o->words - 1};
	OK(cuCtxSetCurrent(contexts[o->device]));
	OK(cuStreamSynchronize(stream_of(o)));
	for (size_t i = 0; i < 3; i++) {
		uint32_t got;
		OK(cuMemcpyDtoH_v2(&got, at(o->address) + 4 * places[i], 4));
		CHECK(got == o->word);
	}
}

static void create(struct worker *w)
{
	struct object *o = &w->objects[w->count];
	size_t most = draw(&w->draws, 4) ? 1000000 : 100;
	*o = (struct object){.device = (int)draw(&w->draws, job.devices), .stream = (int)draw(&w->draws, job.streams), .words = 1 + draw(&w->draws, most)};
	GM(w, o->id = gm_store_create(stores[o->device], 4 * o->words, stream_of(o), &o->address));
	if (!done(o->id > 0))
		return;
	o->pins = 1;
	w->count++;
	w->in_use++;
	write_to(w, o);
}

static void get(struct worker *w, struct object *o)
{
	int write = (int)draw(&w->draws, 2);
	void *p = NULL;
	int stream = o->pins ? o->stream : (int)draw(&w->draws, job.streams);
	GM(w, p = gm_store_get(stores[o->device], o->id, write, streams[o->device][stream]));
	if (!done(p))
		return;
	CHECK(p == o->address);
	w->in_use += !o->pins++;
	o->stream = stream;
	read_from(w, o);
	if (write)
		write_to(w, o);
}

static void put(struct worker *w, struct object *o)
{
	int rc = 0;
	int64_t next = draw(&w->draws, 2) ? INT64_MAX : (int64_t)draw(&w->draws, 100);
	GM(w, rc = gm_store_put(stores[o->device], o->id, next, stream_of(o)));
	if (done(rc == 0))
		w->in_use -= !--o->pins;
}

static void end_object(struct worker *w, int i)
{
	struct object *o = &w->objects[i];
	int rc = 0;
	GM(w, rc = gm_store_free(stores[o->device], o->id, stream_of(o)));
	if (!done(rc == 0))
		return;
	w->in_use -= o->pins > 0;
	w->objects[i] = w->objects[--w->count];
}

static void look(const struct worker *w)
{
	struct gm_store_stats s;
	OK(gm_store_get_stats(stores[0], &s));
	CHECK(s.objects >= 0 && s.unused_bytes <= s.card_bytes && s.misses <= s.gets && w->count <= OBJECTS);
}

/* spawn makes a child, which has no objects. */
static void spawn(void)
{
	int status;
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(!gm_store_open(0, NULL) && gm_store_put(stores[0], 1, 0, NULL) == -1 && gm_store_close(stores[0]) == -1 ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void *work(void *number)
{
	struct worker *w = calloc(1, sizeof *w);
	CHECK(w);
	start_draws(&w->draws, *(uint64_t *)number);
	for (uint64_t i = 0; i < job.ops; i++) {
		uint64_t what = draw(&w->draws, 100);
		struct object *o = w->count ? &w->objects[draw(&w->draws, (uint64_t)w->count)] : NULL;
		if (what < 30 && w->count < OBJECTS && w->in_use < IN_USE)
			create(w);
		else if (what < 45 && o && (o->pins || w->in_use < IN_USE))
			get(w, o);
		else if (what < 93 && o && o->pins)
			put(w, o);
		else if (what < 97 && o)
			end_object(w, (int)(o - w->objects));
		else if (what == 99 && job.forks)
			spawn();
		else
			look(w);
	}
	while (w->count) /* a call that fails is made again */
		end_object(w, w->count - 1);
	free(w);
	return NULL;
}

int main(int argc, char **argv)
{
	(void)argc;
	read_arguments(argv + 1);
	alarm(120);
	start_devices();
	for (uint64_t d = 0; d < job.devices; d++) {
		static const char *const policies[] = {"lru", "latency", "size-lru", "fifo"};
		char peer[] = {(char)('0' + (d + 1) % job.devices), 0};
		struct gm_store_options o = {.limit = (8 + 4 * d) * MIB, .host = 64 * MIB, .policy = policies[(job.seed + d) % 4], .evicted = evicted, .user = stores};
		if (job.devices > 1 && job.seed % 2)
			o.peers = peer, o.peer_limit = 8 * MIB;
		CHECK((stores[d] = gm_store_open((int)d, &o)) > 0);
	}
	run_threads(work);
	for (uint64_t d = 0; d < job.devices; d++) {
		struct gm_store_stats s;
		OK(gm_store_get_stats(stores[d], &s));
		CHECK(s.objects == 0 && s.host_bytes == 0 && s.peer_bytes == 0);
		gm_store_close(stores[d]);
	}
	printf("%lu %lu %lu %lu\n", met, failed, fake_fault_count(), evictions);
	return 0;
}
