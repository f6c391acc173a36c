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
