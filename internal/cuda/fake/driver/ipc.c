/* cuIpcGetMemHandle and its kin: memory from cuMemAlloc moves to a file when it is first named, which other processes open through /proc. */
#include "driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The contents of a CUipcMemHandle. */
struct name {
	int32_t pid, fd;
	uint64_t size, inode;
};
_Static_assert(sizeof(struct name) <= sizeof(CUipcMemHandle), "CUipcMemHandle");

static void *pointer(uint64_t address) { return (void *)(uintptr_t)address; }

/* copy writes the pages that are not zero. */
static bool copy(int fd, const char *from, uint64_t size)
{
	static const char zero[4096];
	for (uint64_t at = 0, n; at < size; at += n) {
		n = size - at < sizeof zero ? size - at : sizeof zero;
		if (memcmp(from + at, zero, n) && pwrite(fd, from + at, n, (off_t)at) != (ssize_t)n)
			return false;
	}
	return true;
}

/* share moves a block to a file of its own. All work of its device is done. */
static bool share(struct block *b)
{
	uint64_t start = b->range.key, size = b->range.size;
	int fd = memfd_create("gm-fake-ipc", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0 && copy(fd, pointer(start), size) &&
	    mmap(pointer(start), size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, fd, 0) != MAP_FAILED) {
		b->file = fd + 1;
		return true;
	}
	if (fd >= 0)
		close(fd);
	return false;
}

static CUresult name_of(CUipcMemHandle *handle, uint64_t p)
{
	struct block *b = table_covering(&blocks, p);
	struct stat s;
	if (!handle || !b || b->kind != BLOCK_MEMORY)
		return CUDA_ERROR_INVALID_VALUE;
	if (!b->file) {
		for (int device = b->device; !device_idle(device);)
			device_drain(device);
		if (table_covering(&blocks, p) != b)
			return CUDA_ERROR_INVALID_VALUE;
		if (!b->file && !share(b))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (fstat(b->file - 1, &s) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct name name = {.pid = getpid(), .fd = b->file - 1, .size = b->range.size, .inode = s.st_ino};
	memset(handle, 0, sizeof *handle);
	memcpy(handle->reserved, &name, sizeof name);
	return CUDA_SUCCESS;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr p)
{
	ENTER(NEED_CONTEXT);
	lock();
	CUresult r = name_of(handle, p);
	unlock();
	return r;
}

static CUresult map_file(CUdeviceptr *p, int fd, const struct name *name)
{
	struct stat s;
	if (fstat(fd, &s) != 0 || s.st_ino != name->inode || (uint64_t)s.st_size != name->size)
		return CUDA_ERROR_INVALID_VALUE;
	void *at = mmap(NULL, name->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	lock();
	struct block *b = block_add(BLOCK_OPENED, name->size, (uintptr_t)at);
	unlock();
	if (!b) {
		munmap(at, name->size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*p = (uintptr_t)at;
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *p, CUipcMemHandle handle, unsigned flags)
{
	ENTER(NEED_CONTEXT);
	struct name name;
	char path[64];
	memcpy(&name, handle.reserved, sizeof name);
	if (!p || flags != 1) /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
		return CUDA_ERROR_INVALID_VALUE;
	if (name.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", name.pid, name.fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = map_file(p, fd, &name);
	close(fd);
	return r;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr p)
{
	ENTER(NEED_CONTEXT);
	lock();
	CUresult r = block_free(p, 1u << BLOCK_OPENED);
	unlock();
	return r;
}
