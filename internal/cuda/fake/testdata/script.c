/* Runs the calls that its arguments name, bytes behind a colon, and prints the result of each. */
#include "cuda_api.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUdeviceptr address, reserved;
static CUmemGenericAllocationHandle handle;
static size_t mapped;

static CUresult begin(void)
{
	CUcontext ctx;
	CUresult r = cuInit(0);
	if (r == CUDA_SUCCESS)
		r = cuDevicePrimaryCtxRetain(&ctx, 0);
	return r == CUDA_SUCCESS ? cuCtxSetCurrent(ctx) : r;
}

static CUresult create(size_t size, CUmemLocationType where)
{
	CUmemAllocationProp prop;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = where;
	mapped = size;
	return cuMemCreate(&handle, size, &prop, 0);
}

static CUresult map(void)
{
	CUresult r = cuMemAddressReserve(&reserved, mapped, 0, 0, 0);
	return r == CUDA_SUCCESS ? cuMemMap(reserved, mapped, 0, handle, 0) : r;
}

static CUresult run(const char *word, size_t size)
{
	void *host;
	if (!strcmp(word, "begin"))
		return begin();
	if (!strcmp(word, "alloc"))
		return cuMemAlloc_v2(&address, size);
	if (!strcmp(word, "free"))
		return cuMemFree_v2(address);
	if (!strcmp(word, "create"))
		return create(size, CU_MEM_LOCATION_TYPE_DEVICE);
	if (!strcmp(word, "create-host"))
		return create(size, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	if (!strcmp(word, "map"))
		return map();
	if (!strcmp(word, "unmap"))
		return cuMemUnmap(reserved, mapped);
	if (!strcmp(word, "release"))
		return cuMemRelease(handle);
	if (!strcmp(word, "async"))
		return cuMemAllocAsync(&address, size, 0);
	if (!strcmp(word, "managed"))
		return cuMemAllocManaged(&address, size, CU_MEM_ATTACH_GLOBAL);
	if (!strcmp(word, "host"))
		return cuMemHostAlloc(&host, size, 0);
	if (!strcmp(word, "sync"))
		return cuCtxSynchronize();
	if (!strcmp(word, "kill"))
		raise(SIGKILL);
	if (!strcmp(word, "wait")) /* until the one who started it closes the pipe */
		return getchar() == EOF ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
	fprintf(stderr, "script: %s?\n", word);
	exit(2);
}

int main(int n, char **words)
{
	for (int i = 1; i < n; i++) {
		char *size = strchr(words[i], ':');
		if (size)
			*size++ = 0;
		printf(i > 1 ? " %d" : "%d", (int)run(words[i], size ? strtoull(size, NULL, 0) : 0));
		fflush(stdout);
	}
	putchar('\n');
	return 0;
}
