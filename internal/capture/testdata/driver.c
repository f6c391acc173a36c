/* Obtains memory from the driver in the ways that its arguments name, one after another. Each leaves some of it unfreed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "cuda_api.h"

#define MIB ((size_t)1 << 20)

typedef CUresult alloc_fn(CUdeviceptr *, size_t);
typedef CUresult free_fn(CUdeviceptr);

static void start(void)
{
	CUcontext context;
	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
}

/* churn allocates 23 times and frees all but 5. */
static void churn(alloc_fn *alloc, free_fn *release)
{
	CUdeviceptr p[23];
	for (int i = 0; i < 23; i++)
		CHECK(alloc(&p[i], 1009 * (size_t)(i + 1)));
	for (int i = 0; i < 18; i++)
		CHECK(release(p[i]));
}

/* An auditor sees what is called through the procedure linkage table, and no address that is taken. */
static CUresult linked_alloc(CUdeviceptr *p, size_t size)
{
	return cuMemAlloc_v2(p, size);
}

static CUresult linked_free(CUdeviceptr p)
{
	return cuMemFree_v2(p);
}

static void linked(void)
{
	churn(linked_alloc, linked_free);
}

static void by_dlsym(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	churn((alloc_fn *)dlsym(driver, "cuMemAlloc_v2"), (free_fn *)dlsym(driver, "cuMemFree_v2"));
}

static void deepbind(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND);
	churn((alloc_fn *)dlsym(driver, "cuMemAlloc_v2"), (free_fn *)dlsym(driver, "cuMemFree_v2"));
}

/* by_address asks as the runtime does: cuGetProcAddress for itself, and that for the rest. */
static void by_address(void)
{
	typedef CUresult get_fn(const char *, void **, int, uint64_t, CUdriverProcAddressQueryResult *);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *get, *alloc, *release;
	CHECK(((get_fn *)dlsym(driver, "cuGetProcAddress_v2"))("cuGetProcAddress", &get, 12000, 0, NULL));
	CHECK(((get_fn *)get)("cuMemAlloc", &alloc, 13000, 0, NULL));
	CHECK(((get_fn *)get)("cuMemFree", &release, 13000, 2, NULL));
	churn((alloc_fn *)alloc, (free_fn *)release);
}

static void pools(void)
{
	CUdeviceptr p[40];
	CUmemoryPool pool;
	uint64_t keep = UINT64_MAX;
	CHECK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	for (int i = 0; i < 40; i++)
		CHECK(i % 2 ? cuMemAllocAsync(&p[i], 3 * MIB, NULL) : cuMemAllocFromPoolAsync(&p[i], 5 * MIB, pool, NULL));
	for (int i = 0; i < 30; i++)
		CHECK(cuMemFreeAsync(p[i], NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemFree_v2(p[30]));
	CHECK(cuMemPoolTrimTo(pool, 0));
}

/* manypools makes pools, allocates in each, and destroys them: a hundred at once, and a hundred one after another. */
static void manypools(void)
{
	CUmemPoolProps props;
	CUmemoryPool pool[100];
	CUdeviceptr p;
	memset(&props, 0, sizeof props);
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	for (int at_once = 0; at_once < 2; at_once++) {
		for (int i = 0; i < 100; i++) {
			CHECK(cuMemPoolCreate(&pool[i], &props));
			CHECK(cuMemAllocFromPoolAsync(&p, MIB, pool[i], NULL));
			CHECK(cuMemFreeAsync(p, NULL));
			if (!at_once)
				CHECK(cuMemPoolDestroy(pool[i]));
		}
		for (int i = 0; at_once && i < 100; i++)
			CHECK(cuMemPoolDestroy(pool[i]));
	}
}

static CUmemAllocationProp on_device(void)
{
	CUmemAllocationProp prop;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return prop;
}

/* physical maps handles once and twice, releases them before and after they are unmapped, and asks for one by its address. */
static void physical(void)
{
	CUmemAllocationProp prop = on_device();
	CUmemGenericAllocationHandle h[7], again;
	CUdeviceptr va;
	CHECK(cuMemAddressReserve(&va, 32 * MIB, 0, 0, 0));
	for (int i = 0; i < 7; i++)
		CHECK(cuMemCreate(&h[i], 2 * MIB, &prop, 0));
	for (int i = 0; i < 6; i++)
		CHECK(cuMemMap(va + (size_t)i * 2 * MIB, 2 * MIB, 0, h[i], 0));
	CHECK(cuMemMap(va + 12 * MIB, 2 * MIB, 0, h[0], 0)); /* at two addresses */
	CHECK(cuMemRelease(h[0]));
	CHECK(cuMemUnmap(va, 2 * MIB)); /* still mapped at the other */
	CHECK(cuMemRelease(h[1]));
	CHECK(cuMemRetainAllocationHandle(&again, (void *)(va + 2 * MIB)));
	CHECK(cuMemUnmap(va + 2 * MIB, 2 * MIB)); /* still referred to */
	CHECK(cuMemRelease(h[2]));
	CHECK(cuMemRelease(h[3]));
	CHECK(cuMemUnmap(va + 4 * MIB, 4 * MIB)); /* two at once: gone */
	CHECK(cuMemRelease(h[6]));               /* never mapped: gone */
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	CHECK(cuMemCreate(&h[6], 4 * MIB, &prop, 0));
}

static void host(void)
{
	void *p, *q, *own = aligned_alloc(4096, 8192);
	CHECK(cuMemHostAlloc(&p, 7001, 0));
	CHECK(cuMemAllocHost_v2(&q, 9001));
	CHECK(cuMemHostRegister_v2(own, 8192, 0));
	CHECK(cuMemHostUnregister(own));
	CHECK(cuMemFreeHost(q));
}

static void others(void)
{
	CUdeviceptr p, q;
	size_t pitch;
	CUarray array;
	CUDA_ARRAY_DESCRIPTOR desc = {.Width = 101, .Height = 103, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
	CHECK(cuMemAllocManaged(&p, 5003, CU_MEM_ATTACH_GLOBAL));
	CHECK(cuMemAllocPitch_v2(&q, &pitch, 1000, 37, 4));
	CHECK(cuMemFree_v2(q));
	CHECK(cuArrayCreate_v2(&array, &desc));
	CHECK(cuArrayDestroy(array));
	CHECK(cuArrayCreate_v2(&array, &desc));
}

static void code(void)
{
	CUmodule module;
	CUfunction function;
	CHECK(cuModuleLoadData(&module, "an image"));
	cuModuleGetFunction(&function, module, "f");
}

/* contexts leaves memory to a context that is destroyed, and to a primary one that is reset. */
static void contexts(void)
{
	CUcontext context, before;
	CUdeviceptr p;
	CHECK(cuCtxGetCurrent(&before));
	CHECK(cuCtxCreate_v4(&context, NULL, 0, 0));
	CHECK(cuMemAlloc_v2(&p, 4001));
	CHECK(cuCtxDestroy_v2(context));
	CHECK(cuCtxSetCurrent(before));
	CHECK(cuMemAlloc_v2(&p, 6007));
	CHECK(cuDevicePrimaryCtxReset_v2(0));
	start();
}

/* refused goes on after calls that fail. */
static void refused(void)
{
	CUmemAllocationProp prop = on_device();
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;
	if (cuMemAlloc_v2(&p, (size_t)1 << 45) != CUDA_ERROR_OUT_OF_MEMORY)
		exit(8);
	if (cuMemCreate(&h, (size_t)1 << 44, &prop, 0) != CUDA_ERROR_OUT_OF_MEMORY)
		exit(8);
	cuMemFree_v2(12345);
	cuMemAlloc_v2(NULL, 5);
	CHECK(cuMemAlloc_v2(&p, 77));
	cuMemFree_v2(p); /* may be told to fail: GM_FAKE_FAIL */
	cuMemFree_v2(p);
}

static void *thread(void *context)
{
	CHECK(cuCtxSetCurrent(context));
	for (int i = 0; i < 300; i++)
		linked();
	return NULL;
}

static void threads(void)
{
	CUcontext context;
	pthread_t t[4];
	CHECK(cuCtxGetCurrent(&context));
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, context);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* children forks one that tries to go on, as a data loader's worker might, and waits for it. */
static void children(void)
{
	pid_t child = fork();
	if (child == 0) {
		CUdeviceptr p;
		cuMemAlloc_v2(&p, 555);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	linked();
}

/* many fills the ring more than once. */
static void many(void)
{
	for (int i = 0; i < 2000; i++)
		linked();
}

/* descriptors lists those of this process, and of a program that it starts. */
static void descriptors(void)
{
	for (int fd = 0; fd < 100; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("%d\n", fd);
	fflush(stdout);
	if (system("ls /proc/self/fd"))
		exit(8);
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
	{"linked", linked}, {"dlsym", by_dlsym}, {"deepbind", deepbind}, {"address", by_address}, {"pools", pools}, {"physical", physical},
	{"host", host}, {"others", others}, {"code", code}, {"contexts", contexts}, {"manypools", manypools}, {"refused", refused}, {"threads", threads},
	{"children", children}, {"many", many}, {"descriptors", descriptors},
};

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "exec") == 0) { /* after a fork that has not touched CUDA, as a launcher does */
		if (fork() == 0)
			execv(argv[0], (char *[]){argv[0], "linked", NULL});
		int status;
		wait(&status);
		return WEXITSTATUS(status);
	}
	start();
	for (int i = 1; i < argc; i++) {
		for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
			if (strcmp(argv[i], ways[w].name) == 0)
				ways[w].run();
		if (strcmp(argv[i], "abort") == 0)
			abort();
		if (strcmp(argv[i], "kill") == 0)
			kill(getpid(), SIGKILL);
		if (strcmp(argv[i], "until") == 0 && i + 1 < argc) /* a file is there */
			while (access(argv[i + 1], F_OK) != 0)
				usleep(1000);
		if (strcmp(argv[i], "_exit") == 0)
			_exit(5);
		if (strcmp(argv[i], "image") == 0) /* the same process, another program */
			execv(argv[0], (char *[]){argv[0], "linked", "host", NULL});
	}
	return 0;
}
