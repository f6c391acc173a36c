/* Measures launches of an empty kernel, and calls that the driver refuses at once, which show what a library in front of the driver adds.
 * Prints nanoseconds for each: the least and the median of the rounds. Preload libgmgate.so to see what it costs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 50, LAUNCHES = 2000, REFUSALS = 200000 };

static const char kernel[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";

typedef int launch_fn(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                      void **parameters, void **extra);
static launch_fn *launch;
static int (*synchronize)(void);

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void measure(const char *name, void *function, int calls)
{
	double rounds[ROUNDS];
	for (int r = 0; r < ROUNDS; r++) {
		double begin = now();
		for (int i = 0; i < calls; i++)
			launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
		rounds[r] = (now() - begin) / calls;
		synchronize();
	}
	qsort(rounds, ROUNDS, sizeof *rounds, ascending);
	printf("%s %.1f %.1f\n", name, rounds[0], rounds[ROUNDS / 2]);
}

static void *find(void *library, const char *name)
{
	void *function = dlsym(library, name);
	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return function;
}

int main(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *function;
	int device;
	if (!cuda) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	launch = (launch_fn *)find(cuda, "cuLaunchKernel");
	synchronize = (int (*)(void))find(cuda, "cuCtxSynchronize");
	if (((int (*)(unsigned))find(cuda, "cuInit"))(0) || ((int (*)(int *, int))find(cuda, "cuDeviceGet"))(&device, 0) ||
	    ((int (*)(void **, int))find(cuda, "cuDevicePrimaryCtxRetain"))(&context, device) ||
	    ((int (*)(void *))find(cuda, "cuCtxSetCurrent"))(context)) {
		fprintf(stderr, "there is no GPU\n");
		return 1;
	}
	if (((int (*)(void **, const void *))find(cuda, "cuModuleLoadData"))(&module, kernel) ||
	    ((int (*)(void **, void *, const char *))find(cuda, "cuModuleGetFunction"))(&function, module, "empty")) {
		fprintf(stderr, "the kernel cannot be loaded\n");
		return 1;
	}
	measure("launch", function, LAUNCHES);
	measure("refused", NULL, REFUSALS);
	return 0;
}
