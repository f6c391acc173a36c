#include "start.h"
#include <pthread.h>
#include <unistd.h>
#include <fcntl.h>
#define SHOW(call) printf("%-60s -> %d\n", #call, (int)(call)), fflush(stdout)
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void at_gate(void *d) { (void)d; pthread_mutex_lock(&gate); pthread_mutex_unlock(&gate); }
static CUresult inside;
static void cb(void *d) { (void)d; CUdeviceptr p; inside = cuMemAlloc_v2(&p, 1 << 20); }
static uint64_t get(CUmemoryPool pool, int a) { uint64_t v = 0; cuMemPoolGetAttribute(pool, a, &v); return v; }
int main(void)
{
	void *p; int st; CUmemGenericAllocationHandle h, h2; CUdeviceptr q, r; size_t sz; int dev;
	CUmemAllocationProp prop = on_device(1);
	CUmemAccessDesc rw = access_of(3);
	SHOW(cuMemAlloc_v2(&q, 1));
	st = -7; p = &st;
	SHOW(cuGetProcAddress_v2("cuNoSuch", &p, 13000, 0, (void *)&st)); printf("  st %d p %p\n", st, p);
	SHOW(cuGetProcAddress_v2("cuNoSuch", &p, 13000, 0, NULL));
	SHOW(cuGetProcAddress_v2("cuMemCreate", &p, 9000, 0, (void *)&st)); printf("  st %d p %p\n", st, p);
	SHOW(cuGetProcAddress_v2("cuMemCreate", &p, 9000, 0, NULL));
	SHOW(cuGetProcAddress("cuMemCreate", &p, 9000, 0));
	SHOW(cuGetProcAddress("cuNoSuch", &p, 13000, 0));
	SHOW(cuGetProcAddress_v2("cuMemAlloc_v2", &p, 13000, 0, (void *)&st)); printf("  st %d %d\n", st, p == (void *)cuMemAlloc_v2);
	SHOW(cuGetProcAddress_v2("cuMemAllocAsync_ptsz", &p, 13000, 0, (void *)&st)); printf("  st %d %d\n", st, p == (void *)cuMemAllocAsync_ptsz);
	SHOW(cuGetProcAddress_v2("cuMemAlloc", &p, 2000, 0, (void *)&st)); printf("  st %d p %p\n", st, p);
	SHOW(cuGetProcAddress_v2("cuMemAlloc", &p, 99000, 0, (void *)&st)); printf("  st %d p %p\n", st, p);
	SHOW(cuGetProcAddress_v2("cuMemAlloc", &p, 13000, 3, (void *)&st));
	SHOW(cuInit(0));
	CUdevice d; SHOW(cuDeviceGet(&d, 0));
	puts("no context:");
	SHOW(cuMemCreate(&h, 4 * MIB, &prop, 0));
	SHOW(cuMemAddressReserve(&q, 16 * MIB, 0, 0, 0));
	SHOW(cuMemMap(q, 4 * MIB, 0, h, 0));
	SHOW(cuMemSetAccess(q, 4 * MIB, &rw, 1));
	SHOW(cuMemUnmap(q, 4 * MIB));
	SHOW(cuMemRelease(h));
	SHOW(cuMemAddressFree(q, 16 * MIB));
	SHOW(cuMemAllocAsync(&q, 1 << 20, 0));
	SHOW(cuPointerGetAttribute(&dev, 9, 16));
	SHOW(cuMemGetAddressRange_v2(&q, &sz, 16));
	SHOW(cuMemHostAlloc(&p, 4096, 0));
	puts("context:");
	size_t tot; SHOW(cuDeviceTotalMem_v2(&tot, 0));
	CUcontext ctx; SHOW(cuDevicePrimaryCtxRetain(&ctx, 0)); SHOW(cuCtxSetCurrent(ctx));
	size_t fr; cuMemGetInfo_v2(&fr, &sz); printf("  total %zu %zu free %zu used %zu MiB\n", tot, sz, fr, (sz - fr) >> 20);
	unsigned ver; SHOW(cuCtxGetApiVersion(ctx, &ver)); printf("  %u\n", ver);
	int lo, hi; SHOW(cuCtxGetStreamPriorityRange(&lo, &hi)); printf("  %d %d\n", lo, hi);
	for (int i = 0; i < 8; i++) { size_t v = 0; int rr = cuCtxGetLimit(&v, i); printf("  limit %d: %d %zu\n", i, rr, v); }
	SHOW(cuMemGetAddressRange_v2(&q, &sz, 16));
	SHOW(cuMemCreate(&h, 4 * MIB, &prop, 0)); printf("  handle %llx\n", h);
	SHOW(cuMemCreate(&h2, 4 * MIB, &prop, 0)); printf("  handle %llx\n", h2);
	SHOW(cuMemCreate(&h2, MIB, &prop, 0));
	SHOW(cuMemAddressReserve(&q, 32 * MIB, 0, 0, 0)); printf("  at %llx\n", q);
	SHOW(cuMemAddressReserve(&r, MIB, 0, 0, 0));
	SHOW(cuMemAddressReserve(&r, 2 * MIB, 3, 0, 0));
	SHOW(cuMemAddressReserve(&r, 2 * MIB, 1 << 16, 0, 0)); printf("  at %llx\n", r); cuMemAddressFree(r, 2 * MIB);
	SHOW(cuMemSetAccess(q, 4 * MIB, &rw, 1));
	SHOW(cuMemUnmap(q, 4 * MIB));
	SHOW(cuMemMap(q, MIB, 0, h, 0));
	SHOW(cuMemMap(q, 2 * MIB, 0, h, 0));
	SHOW(cuMemMap(q, 2 * MIB, 2 * MIB, h, 0));
	SHOW(cuMemMap(q, 8 * MIB, 0, h, 0));
	SHOW(cuMemMap(q + MIB, 4 * MIB, 0, h, 0));
	SHOW(cuMemMap(q, 4 * MIB, 0, h, 0));
	SHOW(cuMemMap(q, 4 * MIB, 0, h, 0));
	SHOW(cuMemMap(q + 2 * MIB, 4 * MIB, 0, h, 0));
	SHOW(cuMemMap(q + 30 * MIB, 4 * MIB, 0, h, 0));
	unsigned v = 1; SHOW(cuMemcpyHtoD_v2(q, &v, 4));
	unsigned long long fl; CUmemLocation here = {1, 0}; SHOW(cuMemGetAccess(&fl, &here, q)); printf("  %llu\n", fl);
	SHOW(cuMemSetAccess(q, 2 * MIB, &rw, 1));
	SHOW(cuMemGetAccess(&fl, &here, q)); printf("  %llu\n", fl);
	SHOW(cuMemSetAccess(q, 8 * MIB, &rw, 1));
	SHOW(cuMemSetAccess(q, 4 * MIB, &rw, 1));
	SHOW(cuMemMap(q + 4 * MIB, 4 * MIB, 0, h, 0));
	SHOW(cuMemSetAccess(q + 4 * MIB, 4 * MIB, &rw, 1));
	SHOW(cuMemGetAddressRange_v2(&r, &sz, q + 5 * MIB)); printf("  start %+lld size %zu\n", (long long)(r - q), sz);
	unsigned mt = 0; SHOW(cuPointerGetAttribute(&mt, 2, q)); SHOW(cuPointerGetAttribute(&p, 1, q)); printf("  type %u ctx %d\n", mt, p == ctx);
	SHOW(cuPointerGetAttribute(&dev, 9, q)); printf("  ordinal %d\n", dev);
	SHOW(cuPointerGetAttribute(&r, 11, q + 5 * MIB)); SHOW(cuPointerGetAttribute(&sz, 12, q + 5 * MIB)); printf("  range %+lld %zu\n", (long long)(r - q), sz);
	SHOW(cuPointerGetAttribute(&mt, 2, q + 20 * MIB));
	SHOW(cuMemFree_v2(q));
	SHOW(cuMemAddressFree(q, 32 * MIB));
	SHOW(cuMemUnmap(q, 2 * MIB));
	SHOW(cuMemUnmap(q, 6 * MIB));
	SHOW(cuMemUnmap(q, 16 * MIB));
	SHOW(cuMemRetainAllocationHandle(&h2, (void *)(q + 5 * MIB))); printf("  same %d\n", h2 == h);
	SHOW(cuMemRelease(h2)); SHOW(cuMemRelease(h));
	SHOW(cuMemRelease(h));
	SHOW(cuMemMap(q + 8 * MIB, 4 * MIB, 0, h, 0));
	SHOW(cuMemRetainAllocationHandle(&h2, (void *)q)); printf("  same %d\n", h2 == h);
	int fd; SHOW(cuMemExportToShareableHandle(&fd, h2, 1, 0));
	CUmemGenericAllocationHandle h3; SHOW(cuMemImportFromShareableHandle(&h3, (void *)(intptr_t)fd, 1)); printf("  same %d\n", h3 == h2);
	int nul = open("/dev/null", O_RDONLY); CUmemGenericAllocationHandle h4; SHOW(cuMemImportFromShareableHandle(&h4, (void *)(intptr_t)nul, 1));
	prop.requestedHandleTypes = 0; SHOW(cuMemCreate(&h4, 4 * MIB, &prop, 0)); SHOW(cuMemExportToShareableHandle(&fd, h4, 1, 0)); cuMemRelease(h4);
	SHOW(cuMemUnmap(q, 8 * MIB)); SHOW(cuMemRelease(h2)); SHOW(cuMemRelease(h3));
	SHOW(cuMemAddressFree(q, 16 * MIB));
	SHOW(cuMemAddressFree(q, 32 * MIB));
	SHOW(cuMemRetainAllocationHandle(&h2, (void *)q));
	puts("memory:");
	SHOW(cuMemFree_v2(4096)); SHOW(cuMemFreeHost(NULL)); SHOW(cuMemFreeHost(&v));
	SHOW(cuMemHostRegister_v2(&v, 0, 0)); SHOW(cuMemAlloc_v2(&r, 0)); SHOW(cuMemAlloc_v2(&r, 1024 * GIB));
	SHOW(cuMemAlloc_v2(&r, 8 * MIB)); SHOW(cuMemFree_v2(r + 4096)); SHOW(cuMemFreeAsync(r, 0)); SHOW(cuMemFree_v2(r));
	for (size_t s = 1; s <= 64 * MIB; s *= 4) { size_t a, b, t; cuMemGetInfo_v2(&a, &t); cuMemAlloc_v2(&r, s); cuMemGetInfo_v2(&b, &t); printf("  alloc %zu takes %zu at %% %llx\n", s, a - b, r); cuMemFree_v2(r); }
	puts("pool:");
	CUmemoryPool pool; SHOW(cuDeviceGetDefaultMemPool(&pool, 0)); CUstream s; cuStreamCreate(&s, 1);
	SHOW(cuMemAllocAsync(&q, 1000, s)); printf("  used %lu reserved %lu\n", get(pool, 7), get(pool, 5));
	SHOW(cuMemAllocAsync(&r, 40 * MIB, s)); printf("  used %lu reserved %lu\n", get(pool, 7), get(pool, 5));
	pthread_mutex_lock(&gate); cuLaunchHostFunc(s, at_gate, NULL);
	SHOW(cuMemFreeAsync(r, s)); printf("  used %lu reserved %lu\n", get(pool, 7), get(pool, 5));
	SHOW(cuMemFreeAsync(r, s));
	pthread_mutex_unlock(&gate); cuStreamSynchronize(s); printf("  used %lu reserved %lu\n", get(pool, 7), get(pool, 5));
	SHOW(cuMemFree_v2(q)); printf("  used %lu reserved %lu\n", get(pool, 7), get(pool, 5));
	cuCtxSynchronize(); printf("  used %lu reserved %lu high %lu %lu\n", get(pool, 7), get(pool, 5), get(pool, 8), get(pool, 6));
	SHOW(cuMemPoolDestroy(pool));
	puts("stream:");
	SHOW(cuLaunchHostFunc(s, cb, NULL)); SHOW(cuStreamSynchronize(s)); printf("  in callback %d\n", inside);
	SHOW(cuStreamDestroy_v2(0));
	puts("unmap under work:");
	prop.requestedHandleTypes = 0; cuMemCreate(&h, 4 * MIB, &prop, 0); cuMemAddressReserve(&q, 4 * MIB, 0, 0, 0); cuMemMap(q, 4 * MIB, 0, h, 0); cuMemSetAccess(q, 4 * MIB, &rw, 1);
	pthread_mutex_lock(&gate); cuLaunchHostFunc(s, at_gate, NULL); cuMemsetD8Async(q, 1, 4 * MIB, s);
	if (fork() == 0) { SHOW(cuInit(0)); SHOW(cuMemAlloc_v2(&r, 1)); SHOW(cuDeviceGetCount(&dev)); SHOW(cuGetProcAddress("cuInit", &p, 13000, 0)); _exit(0); }
	sleep(1);
	alarm(5);
	SHOW(cuMemUnmap(q, 4 * MIB));
	pthread_mutex_unlock(&gate);
	SHOW(cuStreamSynchronize(s)); SHOW(cuMemAlloc_v2(&r, 1)); SHOW(cuMemGetInfo_v2(&fr, &sz)); SHOW(cuMemCreate(&h, 4 * MIB, &prop, 0)); SHOW(cuCtxSynchronize()); SHOW(cuMemRelease(h));
	return 0;
}
