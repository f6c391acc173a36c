/* Prints the resident memory of a process at each stage of using libgm.so.
 * usage: footprint LIBGM [ITERATIONS]
 * A line for each stage: what was done, then anonymous and file-backed memory in KiB. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../gm.h"

#define REQUESTS 4000
#define HELD 200
#define RECORDED 10 /* iterations after which a plan has been requested */

static long field(const char *name)
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name));
	if (f)
		fclose(f);
	return kib;
}

static void stage(const char *what) { printf("%s: %ld %ld\n", what, field("RssAnon:"), field("RssFile:")); }

static void *function(void *library, const char *name)
{
	void *found = dlsym(library, name);
	if (!found) {
		fprintf(stderr, "footprint: %s\n", dlerror());
		exit(1);
	}
	return found;
}

static __typeof__(gm_try_malloc) *take;
static __typeof__(gm_free) *release;

/* An iteration replaces blocks in an order that is random, and the same each time: its layout takes some work. */
static void iterate(void)
{
	static void *held[HELD];
	uint32_t random = 1;
	for (int i = 0; i < REQUESTS; i++) {
		random = random * 1664525 + 1013904223;
		void **at = &held[(random >> 8) % HELD];
		release(*at, 0, 0, NULL);
		*at = take((size_t)((random >> 16) % 997 + 1) << 14, 0, NULL);
	}
	for (int i = 0; i < HELD; i++) {
		release(held[i], 0, 0, NULL);
		held[i] = NULL;
	}
}

static void pause_for(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

int main(int argc, char **argv)
{
	int iterations = argc > 2 ? atoi(argv[2]) : 40;
	if (argc < 2)
		return 2;
	stage("start");
	void *library = dlopen(argv[1], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "footprint: %s\n", dlerror());
		return 1;
	}
	take = function(library, "gm_try_malloc");
	release = function(library, "gm_free");
	stage("loaded");
	void *first = take(1 << 20, 0, NULL);
	if (!first)
		return 1;
	pause_for(20);
	stage("first request");
	for (int n = 0; n < iterations; n++) {
		iterate();
		if (n == RECORDED) {
			stage("recorded");
			pause_for(8000);
			stage("planned");
		}
	}
	stage("plan followed");
	printf("most: %ld 0\n", field("VmHWM:"));
	return 0;
}
