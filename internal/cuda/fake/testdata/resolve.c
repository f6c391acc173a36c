/* cuGetProcAddress gives the addresses of the exported functions, by version and flags. */
#include "check.h"
#include "cuda_api.h"

#include <dlfcn.h>

static void *library;

static void same(const char *name, int version, uint64_t flags, const char *symbol)
{
	void *p = NULL, *q = NULL;
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	OK(cuGetProcAddress_v2(name, &p, version, flags, &status));
	CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
	OK(cuGetProcAddress(name, &q, version, flags));
	if (!p || p != dlsym(library, symbol) || p != q) {
		fprintf(stderr, "%s at %d with flags %d is not %s\n", name, version, (int)flags, symbol);
		exit(1);
	}
}

static void missing(const char *name, int version, CUdriverProcAddressQueryResult why)
{
	void *p = &library;
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	OK(cuGetProcAddress_v2(name, &p, version, 0, &status));
	CHECK(status == why && p == NULL);
	GIVES(CUDA_ERROR_NOT_FOUND, cuGetProcAddress(name, &p, version, 0));
}

int main(void)
{
	library = dlopen("libcuda.so.1", RTLD_NOW);
	CHECK(library);
	same("cuInit", 2000, 0, "cuInit");
	same("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
	same("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
	same("cuMemFree", 12000, 0, "cuMemFree_v2");
	same("cuMemCreate", 13000, 0, "cuMemCreate");
	same("cuCtxCreate", 11020, 0, "cuCtxCreate_v2");
	same("cuCtxCreate", 12000, 0, "cuCtxCreate_v3");
	same("cuCtxCreate", 13000, 0, "cuCtxCreate_v4");
	same("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
	same("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
	same("cuMemAllocAsync", 13000, 0, "cuMemAllocAsync");
	same("cuMemAllocAsync", 13000, 1, "cuMemAllocAsync");
	same("cuMemAllocAsync", 13000, 2, "cuMemAllocAsync_ptsz");
	same("cuMemFreeAsync", 13000, 2, "cuMemFreeAsync_ptsz");
	same("cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds");
	same("cuMemcpyHtoDAsync", 13000, 2, "cuMemcpyHtoDAsync_v2_ptsz");
	same("cuMemAlloc", 13000, 2, "cuMemAlloc_v2");
	same("cuMemAllocAsync", 13000, 3, "cuMemAllocAsync_ptsz");
	missing("cuMemAlloc_v2", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	missing("cuNoSuchFunction", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	missing("cuMemCreate", 9000, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

	void *p;
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &p, 99000, 0));
	const void *table;
	CUuuid id = {{0}};
	GIVES(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(&table, &id));
	const char *name;
	OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name));
	CHECK(!strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY"));
	return 0;
}
