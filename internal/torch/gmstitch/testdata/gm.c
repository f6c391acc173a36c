// Stands for libgm.so in tests of the Python glue: host memory, and a line for each call in the file that GM_LOG names.
//
//	GM_LIMIT     bytes that may be allocated
//	GM_SNAPSHOT  what gm_snapshot returns in place of the true one
#include "gm.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gm_stats stats;
static struct block { void *p; long long size; void *stream; int device; } blocks[MOST];
static __thread char failure[200];

static void note(const char *format, ...) {
	const char *path = getenv("GM_LOG");
	FILE *f = path ? fopen(path, "a") : NULL;
	if (!f) return;
	va_list args;
	va_start(args, format);
	fprintf(f, "%d ", getpid());
	vfprintf(f, format, args);
	fputc('\n', f);
	va_end(args);
	fclose(f);
}

static void count(struct gm_counter *c, long long n) {
	c[GM_ALL].current += n;
	if (n > 0) c[GM_ALL].allocated += n;
	else c[GM_ALL].freed -= n;
	if (c[GM_ALL].current > c[GM_ALL].peak) c[GM_ALL].peak = c[GM_ALL].current;
}

static void count_block(long long size, int sign) {
	count(stats.allocation, sign);
	count(stats.segment, sign);
	count(stats.requested_bytes, sign * size);
	count(stats.allocated_bytes, sign * size);
	count(stats.active_bytes, sign * size);
	count(stats.reserved_bytes, sign * size);
}

void *gm_try_malloc(size_t size, int device, void *stream) {
	note("malloc %zu %d %p", size, device, stream);
	if (!size) return NULL;
	const char *limit = getenv("GM_LIMIT");
	void *p = NULL;
	pthread_mutex_lock(&lock);
	if (!limit || stats.reserved_bytes[GM_ALL].current + (long long)size <= atoll(limit)) p = malloc(size);
	if (!p) {
		stats.ooms++;
		snprintf(failure, sizeof failure, "CUDA out of memory. Tried to allocate %zu bytes", size);
	}
	for (int i = 0; p && i < MOST; i++)
		if (!blocks[i].p) {
			blocks[i] = (struct block){p, (long long)size, stream, device};
			count_block((long long)size, 1);
			break;
		}
	pthread_mutex_unlock(&lock);
	return p;
}

void *gm_malloc(ssize_t size, int device, void *stream) { return gm_try_malloc((size_t)size, device, stream); }

void gm_free(void *p, ssize_t size, int device, void *stream) {
	note("free %zd %d %p", size, device, stream);
	pthread_mutex_lock(&lock);
	for (int i = 0; p && i < MOST; i++)
		if (blocks[i].p == p) {
			count_block(blocks[i].size, -1);
			blocks[i].p = NULL;
			free(p);
		}
	pthread_mutex_unlock(&lock);
}

void gm_record_stream(void *p, void *stream) { note("record_stream %d %p", p != NULL, stream); }
void gm_init(int devices) { note("init %d", devices); }
void gm_reset(void) { note("reset"); }
void gm_memory_fraction(double fraction, int device) { note("memory_fraction %g %d", fraction, device); }

void *gm_base_alloc(void *p, size_t *size) {
	note("base_alloc");
	*size = 0;
	return p;
}

void gm_begin_pool(int device, uint64_t id0, uint64_t id1, void *filter) {
	note("begin_pool %d %llu %llu %d", device, (unsigned long long)id0, (unsigned long long)id1, filter != NULL);
}
void gm_end_pool(int device, uint64_t id0, uint64_t id1) {
	note("end_pool %d %llu %llu", device, (unsigned long long)id0, (unsigned long long)id1);
}
void gm_release_pool(int device, uint64_t id0, uint64_t id1) {
	note("release_pool %d %llu %llu", device, (unsigned long long)id0, (unsigned long long)id1);
}

int gm_retain_pool(int device, uint64_t id0, uint64_t id1) {
	note("retain_pool %d %llu %llu", device, (unsigned long long)id0, (unsigned long long)id1);
	return 0;
}

size_t gm_last_error(char *text, size_t n) { return (size_t)snprintf(text, n, "%s", failure); }

int gm_get_stats(int device, struct gm_stats *out) {
	if (device != 0) return -1;
	pthread_mutex_lock(&lock);
	*out = stats;
	pthread_mutex_unlock(&lock);
	return 0;
}

void gm_reset_peak_stats(int device) {
	note("reset_peak %d", device);
	struct gm_counter *all[] = {stats.allocation, stats.allocated_bytes, stats.requested_bytes, stats.active_bytes,
		stats.reserved_bytes, stats.segment};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) all[i][GM_ALL].peak = all[i][GM_ALL].current;
}

void gm_reset_accumulated_stats(int device) { note("reset_accumulated %d", device); }

size_t gm_snapshot(char *text, size_t n) {
	const char *given = getenv("GM_SNAPSHOT");
	if (given) return (size_t)snprintf(text, n, "%s", given);
	size_t length = 0;
#define ADD(...) (length += (size_t)snprintf(length < n ? text + length : NULL, length < n ? n - length : 0, __VA_ARGS__))
	ADD("[");
	const char *comma = "";
	for (int i = 0; i < MOST; i++) {
		struct block *b = &blocks[i];
		if (!b->p) continue;
		ADD("%s{\"device\": %d, \"address\": %llu, \"total_size\": %lld, \"allocated_size\": %lld, \"stream\": %llu, "
			"\"segment_pool_id\": [0, %d], \"blocks\": [{\"address\": %llu, \"size\": %lld, \"requested_size\": %lld, "
			"\"state\": \"active_allocated\"}]}",
			comma, b->device, (unsigned long long)b->p, b->size, b->size, (unsigned long long)b->stream,
			b->stream ? 7 : 0, (unsigned long long)b->p, b->size, b->size);
		comma = ", ";
	}
	ADD("]");
	return length;
}

const char *gm_version(void) { return "stub"; }
