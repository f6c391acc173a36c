/* Times calls of the driver: pairs of cuMemAllocAsync and cuMemFreeAsync, and of cuMemAlloc and cuMemFree, in ns a call.
 * Usage: calls [PAIRS] */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int fn();

static void *driver;

static fn *get(const char *name)
{
	return (fn *)dlsym(driver, name);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	long pairs = argc > 1 ? atol(argv[1]) : 200000;
	unsigned long long p, keep = -1ULL;
	void *context, *pool;
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver || get("cuInit")(0) || get("cuDevicePrimaryCtxRetain")(&context, 0) || get("cuCtxSetCurrent")(context))
		return 1;
	if (get("cuDeviceGetDefaultMemPool")(&pool, 0) || get("cuMemPoolSetAttribute")(pool, 4, &keep))
		return 1;
	fn *alloc_async = get("cuMemAllocAsync"), *free_async = get("cuMemFreeAsync");
	fn *alloc = get("cuMemAlloc_v2"), *release = get("cuMemFree_v2");
	for (int warm = 0; warm < 2; warm++) {
		long n = warm ? pairs : 1000;
		double a = now();
		for (long i = 0; i < n; i++)
			if (alloc_async(&p, (size_t)4096, (void *)0) || free_async(p, (void *)0))
				return 2;
		double b = now();
		for (long i = 0; i < n / 20; i++)
			if (alloc(&p, (size_t)2097152) || release(p))
				return 3;
		double c = now();
		if (warm)
			printf("%.1f %.1f\n", (b - a) / n / 2, (c - b) / (n / 20) / 2);
	}
	return 0;
}
