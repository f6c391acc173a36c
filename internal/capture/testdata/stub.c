/* A program that has the driver's functions within, as those have that are built against a stub: each looks for the real one. The
 * argument says what it does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "cuda_api.h"

typedef CUresult init_fn(unsigned);
typedef CUresult retain_fn(CUcontext *, CUdevice);
typedef CUresult set_fn(CUcontext);
typedef CUresult alloc_fn(CUdeviceptr *, size_t);

static void *driver;
static int slow;

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t size)
{
	return ((alloc_fn *)dlsym(driver, "cuMemAlloc_v2"))(p, size);
}

/* The preload library makes the file of its ring with it. */
int posix_fallocate(int fd, off_t offset, off_t size)
{
	if (slow)
		usleep(300000);
	return offset ? -1 : ftruncate(fd, size);
}

static void start(void)
{
	CUcontext context;
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(((init_fn *)dlsym(driver, "cuInit"))(0));
	CHECK(((retain_fn *)dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0));
	CHECK(((set_fn *)dlsym(driver, "cuCtxSetCurrent"))(context));
}

static void allocate(void)
{
	CUdeviceptr p;
	CHECK(cuMemAlloc_v2(&p, 1031));
}

/* reload loads the driver at two places, one after the other. */
static void reload(void)
{
	start();
	allocate();
	void *before = dlsym(driver, "cuInit");
	CHECK(dlclose(driver));
	if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD))
		mmap((void *)((size_t)before & ~(size_t)0xfff), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	start();
	allocate();
}

static void *begin(void *unused)
{
	(void)unused;
	start();
	return NULL;
}

/* split forks while another thread touches CUDA for the first time. */
static void split(void)
{
	pthread_t thread;
	int status;
	slow = 1;
	CHECK(pthread_create(&thread, NULL, begin, NULL));
	usleep(100000);
	pid_t child = fork();
	if (!child) {
		CUdeviceptr p;
		alarm(5);
		driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
		((alloc_fn *)dlsym(driver, "cuMemAlloc_v2"))(&p, 1 << 20);
		_exit(0);
	}
	CHECK(pthread_join(thread, NULL));
	waitpid(child, &status, 0);
	CHECK(status);
}

/* unlinked calls a library whose file is gone. */
static void unlinked(const char *library)
{
	void *plugin = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!plugin || unlink(library))
		exit(8);
	CHECK(((int (*)(void))dlsym(plugin, "plugin"))());
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	if (strcmp(way, "allocate") == 0) {
		start();
		allocate();
	} else if (strcmp(way, "reload") == 0) {
		reload();
	} else if (strcmp(way, "split") == 0) {
		split();
	} else if (strcmp(way, "unlinked") == 0) {
		unlinked(argv[2]);
	} else if (strcmp(way, "tool") == 0) {
		CUdeviceptr p;
		start();
		dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
		CHECK(((alloc_fn *)dlsym(RTLD_DEFAULT, "tool_alloc"))(&p, 1033));
	}
	return 0;
}
