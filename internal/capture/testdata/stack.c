/* Prints how many bytes of its stack a thread takes that makes calls. Behind the argument smallest, threads have the smallest stack there is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "cuda_api.h"
#include "cudart.h"

#define STACK (256 << 10)
#define PAINT 0xa5

static CUcontext context;

static void retain(void)
{
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
}

static void alloc(void)
{
	CUdeviceptr p;
	retain();
	CHECK(cuMemAlloc_v2(&p, 4096));
	CHECK(cuMemFree_v2(p));
}

static void pool(void)
{
	CUdeviceptr p;
	retain();
	CHECK(cuMemAllocAsync(&p, 4096, NULL));
	CHECK(cuMemFreeAsync(p, NULL));
}

static void runtime(void)
{
	void *p;
	CHECK(cudaMalloc(&p, 4096));
	CHECK(cudaFree(p));
}

static void refused(void)
{
	CUdeviceptr p;
	retain();
	if (cuMemAlloc_v2(&p, (size_t)1 << 45) != CUDA_ERROR_OUT_OF_MEMORY)
		exit(8);
}

static void code(void)
{
	CUmodule module;
	retain();
	CHECK(cuModuleLoadData(&module, "an image"));
}

static void address(void)
{
	typedef CUresult get_fn(const char *, void **, int, uint64_t, CUdriverProcAddressQueryResult *);
	void *get = dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"), *found;
	CHECK(((get_fn *)get)("cuMemAlloc", &found, 13000, 0, NULL));
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {{"retain", retain}, {"alloc", alloc}, {"pool", pool}, {"runtime", runtime}, {"refused", refused}, {"code", code}, {"address", address}};

static void *run(void *way)
{
	((void (*)(void))way)();
	return NULL;
}

/* in_thread runs a thread on a stack, or without one on the smallest that there is. */
static void in_thread(void (*way)(void), void *stack)
{
	pthread_attr_t attr;
	pthread_t thread;
	CHECK(pthread_attr_init(&attr));
	CHECK(stack ? pthread_attr_setstack(&attr, stack, STACK) : pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN));
	CHECK(pthread_create(&thread, &attr, run, (void *)way));
	CHECK(pthread_join(thread, NULL));
}

int main(int argc, char **argv)
{
	unsigned char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(cuInit(0));
	int smallest = 0;
	for (int i = 1; i < argc; i++) {
		smallest |= strcmp(argv[i], "smallest") == 0;
		for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
			if (strcmp(argv[i], ways[w].name))
				continue;
			size_t untouched = 0;
			memset(stack, PAINT, STACK);
			in_thread(ways[w].run, smallest ? NULL : stack);
			while (!smallest && stack[untouched] == PAINT)
				untouched++;
			printf("%zu\n", STACK - untouched);
		}
	}
	return 0;
}
