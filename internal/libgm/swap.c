/* The swapper's functions: Go's, with a lock of its own for each device, as copies are not to wait for the allocator. */
#define _GNU_SOURCE
#include "libgm.h"

#include <string.h>

#include "_cgo_export.h"

static pthread_mutex_t locks[GM_DEVICES];
static atomic_bool used;

__attribute__((constructor)) static void prepare(void)
{
	pthread_mutexattr_t spin;
	pthread_mutexattr_init(&spin);
	pthread_mutexattr_settype(&spin, PTHREAD_MUTEX_ADAPTIVE_NP);
	for (int i = 0; i < GM_DEVICES; i++)
		pthread_mutex_init(&locks[i], &spin);
	pthread_mutexattr_destroy(&spin);
}

static bool refuse(const char *text)
{
	gm_set_error(text, strlen(text));
	return false;
}

/* begin locks a device, unless nothing can be done for it. */
static bool begin(int device)
{
	if (forked())
		return refuse(GM_FORKED);
	if (!gm_device_valid(device))
		return refuse("The device is not valid.");
	pthread_mutex_lock(&locks[device]);
	return true;
}

static int end(int device, int result)
{
	pthread_mutex_unlock(&locks[device]);
	return result;
}

static uint64_t number(const void *p) { return (uint64_t)(uintptr_t)p; }

int gm_swap_open(int device, size_t host_bytes, int timed)
{
	if (!begin(device))
		return -1;
	atomic_store(&used, true);
	return end(device, go_swap_open(device, host_bytes, timed != 0));
}

int64_t gm_swap_out(int device, void *from, size_t n, void *stream)
{
	if (!begin(device))
		return 0;
	int64_t ticket = go_swap_out(device, number(from), n, number(stream));
	end(device, 0);
	return ticket;
}

int gm_swap_expect(int device, size_t n)
{
	return begin(device) ? end(device, go_swap_expect(device, n)) : -1;
}

int gm_swap_left(int device, int64_t ticket, void *stream)
{
	return begin(device) ? end(device, go_swap_left(device, ticket, number(stream))) : -1;
}

int gm_swap_in(int device, int64_t ticket, void *to, void *stream)
{
	return begin(device) ? end(device, go_swap_in(device, ticket, number(to), number(stream))) : -1;
}

int gm_swap_ready(int device, int64_t ticket, void *stream)
{
	return begin(device) ? end(device, go_swap_ready(device, ticket, number(stream))) : -1;
}

int gm_swap_drop(int device, int64_t ticket)
{
	return begin(device) ? end(device, go_swap_drop(device, ticket)) : -1;
}

int gm_swap_copied(int device, int64_t ticket)
{
	return begin(device) ? end(device, go_swap_copied(device, ticket)) : -1;
}

int gm_swap_words(int device, void *to, void *from, size_t pitch, size_t word, size_t n, void *stream)
{
	return begin(device) ? end(device, go_swap_words(device, number(to), number(from), pitch, word, n, number(stream))) : -1;
}

int gm_swap_get_stats(int device, struct gm_swap_stats *stats)
{
	return begin(device) ? end(device, go_swap_get_stats(device, stats)) : -1;
}

void gm_swap_close(int device)
{
	if (begin(device))
		end(device, go_swap_close(device));
}

/* The process ends with copies under way, but with its log written. */
__attribute__((destructor)) static void finish(void)
{
	if (!forked() && atomic_load(&used))
		go_swap_finish();
}

/* What is borrowed lies between these addresses, among other memory. */
static _Atomic uint64_t borrowed_from = UINT64_MAX, borrowed_to;

static bool among_borrowed(const void *p)
{
	uint64_t address = number(p);
	return address < atomic_load_explicit(&borrowed_to, memory_order_acquire) && address >= atomic_load(&borrowed_from) && !forked();
}

static void extend_borrowed(uint64_t from, uint64_t to)
{
	uint64_t old = atomic_load(&borrowed_from);
	while (from < old && !atomic_compare_exchange_weak(&borrowed_from, &old, from))
		;
	old = atomic_load(&borrowed_to);
	while (to > old && !atomic_compare_exchange_weak(&borrowed_to, &old, to))
		;
}

static __thread void *taken __attribute__((tls_model("initial-exec")));

/* borrow takes n bytes of the host, NULL if there are none. */
static void *borrow(int device, size_t n, void *stream)
{
	if (!begin(device))
		return NULL;
	uint64_t p = go_swap_borrow(device, n, number(stream));
	if (p)
		extend_borrowed(p, p + n);
	end(device, 0);
	return (void *)(uintptr_t)p;
}

int gm_swap_borrow(int device, size_t n, void *stream)
{
	if (!gm_asked_last() || stream == PER_THREAD) {
		refuse("No memory is borrowed for this request: it may be met yet, or is one of a stream of each thread.");
		return -1;
	}
	taken = borrow(device, n, stream);
	return taken ? 0 : -1;
}

/* What the next request of this thread has, if it is one of so many bytes on this stream. */
static __thread struct {
	void *p, *stream;
	size_t size;
	int device;
} lodging __attribute__((tls_model("initial-exec")));

int gm_swap_lodge(int device, size_t n, void *stream)
{
	if (lodging.p)
		gm_give_back(lodging.p);
	lodging.p = NULL;
	if (!n)
		return 0;
	if (n <= GM_SMALL_SIZE || stream == PER_THREAD) {
		refuse("No memory is taken ahead for a request of a mebibyte or less, or for one of a stream of each thread.");
		return -1;
	}
	lodging.p = borrow(device, n, stream);
	lodging.stream = stream == LEGACY ? NULL : stream;
	lodging.size = n;
	lodging.device = device;
	return lodging.p ? 0 : -1;
}

void *gm_take_lodging(int device, size_t size, void *stream)
{
	if (!lodging.p || lodging.size != size || lodging.device != device || lodging.stream != stream)
		return NULL;
	void *p = lodging.p;
	lodging.p = NULL;
	return p;
}

void gm_keep_borrowed(void *p) { taken = p; }

void *gm_take_borrowed(void)
{
	void *p = taken;
	taken = NULL;
	return p;
}

/* borrower returns the device that has borrowed what lies at p, and its lock, which the caller gives back; -1 and none if there is none. */
static int borrower(void *p, uint64_t *from, uint64_t *size)
{
	for (int device = 0; among_borrowed(p) && device < GM_DEVICES && begin(device); device++) {
		if (go_swap_borrowed(device, number(p), from, size))
			return device;
		end(device, 0);
	}
	return -1;
}

int gm_swap_borrowed(void *p)
{
	uint64_t from, size;
	int device = borrower(p, &from, &size);
	return device < 0 ? device : end(device, device);
}

uint64_t gm_borrowed_from(void *p, uint64_t *size)
{
	uint64_t from = 0;
	int device = borrower(p, &from, size);
	if (device >= 0)
		end(device, 0);
	return from;
}

bool gm_borrower_too(void *p, void *stream)
{
	uint64_t from, size;
	int device = borrower(p, &from, &size);
	if (device < 0)
		return false;
	go_swap_use(device, from, stream == LEGACY || stream == PER_THREAD ? 0 : number(stream)); /* 0 waits for the streams of all threads */
	return end(device, true);
}

bool gm_give_back(void *p)
{
	uint64_t from, size;
	int device = borrower(p, &from, &size);
	if (device < 0)
		return false;
	go_swap_return(device, from);
	return end(device, true);
}

int64_t gm_swap_plan(const char *request, size_t n, char *answer, size_t room)
{
	if (forked()) {
		refuse(GM_FORKED);
		return -1;
	}
	return go_swap_plan((char *)request, n, answer, room);
}

int64_t gm_order(const char *request, size_t n, char *answer, size_t room)
{
	if (forked()) {
		refuse(GM_FORKED);
		return -1;
	}
	return go_order((char *)request, n, answer, room);
}

int64_t gm_partition(const char *request, size_t n, char *answer, size_t room)
{
	if (forked()) {
		refuse(GM_FORKED);
		return -1;
	}
	return go_partition((char *)request, n, answer, room);
}
