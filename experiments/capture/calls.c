/* Times calls of the driver, in ns a call: pairs of cuMemAllocAsync and cuMemFreeAsync, and of cuMemAlloc and cuMemFree. With an image
 * of code, launches of its function f, too.
 *
 * Usage: calls [PAIRS [IMAGE]] */
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

/* launches times empty launches, a synchronisation now and then between them left out. */
static int launches(const char *image, long n)
{
	void *module, *function;
	double spent = 0;
	fn *launch = get("cuLaunchKernel");
	if (get("cuModuleLoadData")(&module, image) || get("cuModuleGetFunction")(&function, module, "f"))
		return 1;
	for (long i = 0; i < n; i += 100) {
		double a = now();
		for (int k = 0; k < 100; k++)
			if (launch(function, 1, 1, 1, 1, 1, 1, 0, (void *)0, (void *)0, (void *)0))
				return 1;
		spent += now() - a;
		get("cuCtxSynchronize")();
	}
	printf(" %.1f", spent / n);
	return 0;
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
			printf("%.1f %.1f", (b - a) / n / 2, (c - b) / (n / 20) / 2);
	}
	if (argc > 2 && launches(argv[2], pairs))
		return 4;
	printf("\n");
	return 0;
}
