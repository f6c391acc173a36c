/* What GM_FAKE_RACES finds, and what it does not. */
#include "start.h"
#include "fake_races.h"

#include <unistd.h>

static const char *path;
static CUstream a, b;
static CUevent e;

/* found returns how many races were found since it was asked last. */
static int found(void)
{
	char line[4096];
	int n = 0;
	FILE *f = fopen(path, "r");
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f))
		n += !strncmp(line, "race: ", 6);
	fclose(f);
	unlink(path);
	return n;
}

static void settle(void)
{
	OK(cuCtxSynchronize());
	found();
}

static void write_in(CUstream s, CUdeviceptr p, const char *mark) { fake_touch(s, p, MIB, true, mark); }
static void read_in(CUstream s, CUdeviceptr p, const char *mark) { fake_touch(s, p, MIB, false, mark); }

/* A kernel in one stream and a copy in another, with and without an event between them. */
static void streams(CUdeviceptr p, void *pinned)
{
	write_in(a, p, "made");
	OK(cuMemcpyDtoHAsync_v2(pinned, p, MIB, b));
	CHECK(found() == 1);
	write_in(a, p, "made over");
	CHECK(found() == 1); /* the copy reads it */
	settle();
	write_in(a, p, "made in order");
	OK(cuEventRecord(e, a));
	OK(cuStreamWaitEvent(b, e, 0));
	OK(cuMemcpyDtoHAsync_v2(pinned, p, MIB, b));
	read_in(a, p, "two read");
	OK(cuEventRecord(e, b));
	OK(cuStreamWaitEvent(a, e, 0));
	write_in(a, p, "made over in order");
	CHECK(found() == 0);
	settle();
}

/* An event that was recorded too early. Others of the memory may be written meanwhile. */
static void early(CUdeviceptr p, void *pinned)
{
	OK(cuEventRecord(e, a));
	write_in(a, p, "behind the event");
	OK(cuStreamWaitEvent(b, e, 0));
	OK(cuMemcpyDtoHAsync_v2(pinned, p + MIB, MIB, b));
	CHECK(found() == 0);
	OK(cuMemcpyDtoHAsync_v2(pinned, p + MIB - 4, MIB, b));
	CHECK(found() == 1);
	settle();
}

/* What the host knows, those streams know that get work later; that a kernel is done here tells it nothing. */
static void by_host(CUdeviceptr p)
{
	write_in(a, p, "drained");
	fake_drain(a);
	read_in(b, p, "not waited for");
	CHECK(found() == 1);
	settle();
	write_in(a, p, "waited for");
	OK(cuStreamSynchronize(a));
	read_in(b, p, "behind the host");
	CHECK(found() == 0);
	write_in(a, p + MIB, "asked for");
	OK(cuEventRecord(e, a));
	int asked = 0;
	while (cuEventQuery(e) == CUDA_ERROR_NOT_READY)
		CHECK(++asked < 1000000);
	read_in(b, p + MIB, "behind what was asked");
	CHECK(found() == 0);
	settle();
}

/* The legacy stream and a blocking one are in order, which a non-blocking one is not. */
static void legacy(CUdeviceptr p)
{
	CUstream blocking;
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	write_in(blocking, p, "in a blocking stream");
	write_in(0, p, "in the legacy stream");
	read_in(blocking, p, "in a blocking stream");
	CHECK(found() == 0);
	read_in(a, p, "in a non-blocking stream");
	CHECK(found() == 1);
	OK(cuStreamDestroy_v2(blocking));
	settle();
}

/* Physical memory is the same at another address, and is not to be unmapped before its work is done. */
static void remapped(void)
{
	const size_t size = 2 * MIB;
	CUmemAllocationProp prop = on_device(CU_MEM_HANDLE_TYPE_NONE);
	CUmemAccessDesc access = access_of(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemGenericAllocationHandle handle;
	CUdeviceptr first, second;
	OK(cuMemCreate(&handle, size, &prop, 0));
	OK(cuMemAddressReserve(&first, size, 0, 0, 0));
	OK(cuMemAddressReserve(&second, size, 0, 0, 0));
	OK(cuMemMap(first, size, 0, handle, 0));
	OK(cuMemSetAccess(first, size, &access, 1));
	write_in(a, first, "at the first address");
	OK(cuMemUnmap(first, size));
	CHECK(found() == 1);
	OK(cuMemMap(second, size, 0, handle, 0));
	OK(cuMemSetAccess(second, size, &access, 1));
	write_in(b, second, "at the second address");
	CHECK(found() == 1);
	OK(cuStreamSynchronize(b));
	OK(cuMemMap(first, size, 0, handle, 0));
	OK(cuMemSetAccess(first, size, &access, 1));
	write_in(b, second, "there, while it is at both");
	OK(cuMemUnmap(first, size));
	CHECK(found() == 0);
	OK(cuMemUnmap(second, size));
	CHECK(found() == 1);
	OK(cuMemRelease(handle));
	OK(cuMemAddressFree(first, size));
	OK(cuMemAddressFree(second, size));
	settle();
}

/* Pinned memory: a copy out to where a copy in still reads, the host, and its end. */
static void pinned_again(CUdeviceptr p)
{
	void *pinned;
	OK(cuMemAllocHost_v2(&pinned, MIB));
	OK(cuMemcpyHtoDAsync_v2(p, pinned, MIB, a));
	OK(cuMemcpyDtoHAsync_v2(pinned, p + MIB, MIB, b));
	CHECK(found() == 1);
	fake_host_touch(pinned, 4, false, "too early");
	CHECK(found() == 1);
	OK(cuStreamSynchronize(b));
	fake_host_touch(pinned, 4, false, "not too early");
	CHECK(found() == 0);
	OK(cuMemcpyHtoDAsync_v2(p, pinned, MIB, a));
	OK(cuMemFreeHost(pinned));
	CHECK(found() == 1);
	settle();
}

/* A free of a device's memory waits for all that is queued. */
static void freed(void)
{
	CUdeviceptr p;
	OK(cuMemAlloc_v2(&p, MIB));
	write_in(a, p, "before a free");
	OK(cuMemFree_v2(p));
	CHECK(found() == 0);
}

int main(void)
{
	path = getenv("GM_FAKE_RACES");
	CHECK(path);
	CUdeviceptr p;
	void *pinned;
	start();
	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	OK(cuMemAlloc_v2(&p, 2 * MIB));
	OK(cuMemAllocHost_v2(&pinned, MIB));
	streams(p, pinned);
	early(p, pinned);
	by_host(p);
	legacy(p);
	remapped();
	pinned_again(p);
	freed();
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree_v2(p));
	return 0;
}
