/* Private pools that are begun: which requests go there is for a C++ function to say, a std::function<bool(cudaStream_t)> of the
 * caller, which is copied as libstdc++ copies it. It is called here, before Go is entered. */
#include "libgm.h"

#include <string.h>

#include "_cgo_export.h"

struct function; /* std::function as libstdc++ lays it out */
enum { CLONE = 2, DESTROY = 3 };
struct any {
	void *word[2];
};
struct function {
	struct any data;
	bool (*manager)(struct any *to, const struct any *from, int operation);
	bool (*invoker)(const struct any *data, void **stream);
};

#define BEGUN_MAX 64

struct begun {
	int device;
	uint64_t id0, id1;
	int32_t pool;
	struct function filter;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct begun begun[BEGUN_MAX];
static int count;
static _Atomic int open_pools; /* count, to be read without the lock */

static void copy(struct function *to, const struct function *from)
{
	*to = (struct function){0};
	if (from && from->manager) {
		from->manager(&to->data, &from->data, CLONE);
		to->manager = from->manager;
		to->invoker = from->invoker;
	}
}

static void destroy(struct function *f)
{
	if (f->manager)
		f->manager(&f->data, &f->data, DESTROY);
}

/* An empty function accepts all streams. */
static bool accepts(const struct function *f, void *stream) { return !f->manager || f->invoker(&f->data, &stream); }

static void unlock(pthread_rwlock_t **held) { pthread_rwlock_unlock(*held); }

/* A filter is PyTorch's, and may throw: the lock is released then, too. */
int32_t gm_pool_of(int device, void *stream)
{
	if (!atomic_load_explicit(&open_pools, memory_order_acquire))
		return 0;
	int32_t pool = 0;
	pthread_rwlock_rdlock(&lock);
	__attribute__((cleanup(unlock))) pthread_rwlock_t *held = &lock;
	for (int i = 0; i < count && !pool; i++)
		if (begun[i].device == device && accepts(&begun[i].filter, stream))
			pool = begun[i].pool;
	return pool;
}

/* begin returns false, and has begun nothing, if there is no room or no device. */
static bool begin(struct begun *b)
{
	static const char full[] = "No memory pool can be begun: too many are.";
	if (count == BEGUN_MAX) {
		gm_set_error(full, sizeof full - 1);
		return false;
	}
	if (!gm_open(b->device))
		return false;
	gm_lock(b->device);
	b->pool = go_begin_pool(b->device, b->id0, b->id1);
	gm_unlock(b->device);
	if (b->pool)
		begun[count++] = *b;
	return b->pool != 0;
}

static atomic_uint with_pools; /* a bit for each device */

int gm_had_pools(int device) { return gm_device_valid(device) && (atomic_load(&with_pools) >> device & 1); }

/* What a graph captures must not go to the default pool, whose memory others get: without a pool there must be no capture. */
void gm_begin_pool(int device, uint64_t id0, uint64_t id1, void *filter)
{
	if (forked() || !gm_device_valid(device))
		return;
	struct begun b = {.device = device, .id0 = id0, .id1 = id1};
	copy(&b.filter, filter);
	pthread_rwlock_wrlock(&lock);
	bool done = begin(&b);
	atomic_store(&open_pools, count);
	atomic_fetch_or(&with_pools, done ? 1u << device : 0);
	pthread_rwlock_unlock(&lock);
	if (done)
		return;
	destroy(&b.filter);
	gm_throw_oom(gm_error());
}

static bool usable(int device) { return !forked() && gm_device_open(device); }

/* take removes the first pool of that name that is begun. */
static bool take(int device, uint64_t id0, uint64_t id1, struct begun *taken)
{
	bool found = false;
	pthread_rwlock_wrlock(&lock);
	for (int i = 0; i < count && !found; i++) {
		if (begun[i].device != device || begun[i].id0 != id0 || begun[i].id1 != id1)
			continue;
		*taken = begun[i];
		memmove(&begun[i], &begun[i + 1], (size_t)(--count - i) * sizeof *begun);
		found = true;
	}
	atomic_store(&open_pools, count);
	pthread_rwlock_unlock(&lock);
	return found;
}

void gm_end_pool(int device, uint64_t id0, uint64_t id1)
{
	struct begun b;
	if (!usable(device) || !take(device, id0, id1, &b))
		return;
	destroy(&b.filter);
	gm_lock(device);
	go_end_pool(device, b.pool);
	gm_unlock(device);
}

void gm_release_pool(int device, uint64_t id0, uint64_t id1)
{
	if (!usable(device))
		return;
	gm_lock(device);
	go_release_pool(device, id0, id1);
	gm_unlock(device);
}
