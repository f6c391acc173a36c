/* cuMemCreate: physical memory is bytes of a memfd, so that two mappings of a handle are the same memory. */
#include "physical.h"
#include "races.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct table handles;
static uint64_t shadows = UINT64_C(1) << 62; /* the next memory's, above all addresses */

/* Handles that cannot be exported share one sparse file, since one file each would use up the process's descriptors. Each has bytes of its
 * own, which are never reused. */
static struct {
	int fd;
	uint64_t next;
} arena = {.fd = -1};

#define ARENA_SIZE (INT64_C(1) << 50)

/* file_new names the file after its device, which an importing process reads from the name. */
static int file_new(int device, int64_t size)
{
	char name[32];
	snprintf(name, sizeof name, "gm-fake-device-%d", device);
	int fd = memfd_create(name, MFD_CLOEXEC);
	struct rlimit files;
	if (fd < 0 && errno == EMFILE && getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
		fd = memfd_create(name, MFD_CLOEXEC);
	}
	if (fd >= 0 && ftruncate(fd, size) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* file_device returns the device that a file was made for, -1 if it is not such a file. */
static int file_device(int fd)
{
	char link[64], target[64];
	int device;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, target, sizeof target - 1);
	if (n <= 0)
		return -1;
	target[n] = 0;
	return sscanf(target, "/memfd:gm-fake-device-%d", &device) == 1 && device_valid(device) ? device : -1;
}

static bool backing_new(struct memory *m, bool exportable)
{
	if (exportable) {
		m->own_file = true;
		m->fd = file_new(m->prop.location.id, (int64_t)m->size);
		struct stat s;
		if (m->fd >= 0 && fstat(m->fd, &s) == 0)
			m->inode = s.st_ino;
		return m->fd >= 0;
	}
	if (arena.fd < 0)
		arena.fd = file_new(0, ARENA_SIZE);
	m->fd = arena.fd;
	m->offset = arena.next;
	arena.next += m->size;
	return m->fd >= 0;
}

static void backing_free(struct memory *m)
{
	if (m->own_file)
		close(m->fd);
	else
		fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)m->offset, (off_t)m->size);
}

static bool on_host(const struct memory *m) { return m->prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }

static CUresult pay(const struct memory *m)
{
	if (!on_host(m))
		return device_take(m->prop.location.id, FAKE_PHYSICAL, m->size, m->size);
	count_alloc(FAKE_HOST_PHYSICAL, m->size);
	return CUDA_SUCCESS;
}

static void pay_back(const struct memory *m)
{
	if (m->imported)
		return;
	if (on_host(m))
		count_free(FAKE_HOST_PHYSICAL, m->size);
	else
		device_give(m->prop.location.id, FAKE_PHYSICAL, m->size, m->size);
}

/* handle_new adds a handle to memory. */
static struct handle *handle_new(struct memory *m)
{
	static uint64_t last = 0x1000;
	struct handle *h = calloc(1, sizeof *h);
	if (!h)
		return NULL;
	h->entry = (struct entry){++last, 1};
	h->memory = m;
	h->references = 1;
	if (!table_insert(&handles, &h->entry)) {
		free(h);
		return NULL;
	}
	m->handles++;
	if (!m->shadow) {
		m->shadow = shadows;
		shadows += m->size;
	}
	return h;
}

static void handle_drop(struct handle *h)
{
	if (h->references || h->mappings)
		return;
	struct memory *m = h->memory;
	table_remove(&handles, &h->entry);
	free(h);
	if (--m->handles)
		return;
	races_forget(m->shadow, m->size);
	backing_free(m);
	pay_back(m);
	free(m);
}

struct handle *handle_of(CUmemGenericAllocationHandle value)
{
	struct handle *h = table_at(&handles, value);
	return h && h->references ? h : NULL;
}

void handle_unmapped(struct handle *h)
{
	h->mappings--;
	handle_drop(h);
}

static CUresult prop_check(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_FABRIC ? CUDA_ERROR_NOT_PERMITTED
		                                                              : CUDA_ERROR_INVALID_VALUE;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return device_valid(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult memory_create(CUmemGenericAllocationHandle *handle, uint64_t size, const CUmemAllocationProp *prop)
{
	struct memory *m = calloc(1, sizeof *m);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->prop = *prop;
	m->size = size;
	CUresult r = pay(m);
	if (r == CUDA_ERROR_OUT_OF_MEMORY) {
		pools_release_all(prop->location.id);
		r = pay(m);
	}
	if (r != CUDA_SUCCESS) {
		free(m);
		return r;
	}
	bool backed = backing_new(m, prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE);
	struct handle *h = backed ? handle_new(m) : NULL;
	if (h) {
		*handle = h->entry.key;
		return CUDA_SUCCESS;
	}
	if (backed)
		backing_free(m);
	pay_back(m);
	free(m);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
	ENTER(NEED_INIT);
	CUresult r = prop_check(prop);
	if (r != CUDA_SUCCESS)
		return r;
	if (!handle || flags || size == 0 || size % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > (uint64_t)ARENA_SIZE / 1024)
		return CUDA_ERROR_OUT_OF_MEMORY;
	lock();
	r = memory_create(handle, size, prop);
	unlock();
	return r;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	ENTER(NEED_INIT);
	lock();
	struct handle *h = handle_of(handle);
	if (h) {
		h->references--;
		handle_drop(h);
	}
	unlock();
	return h ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
	ENTER(NEED_INIT);
	if (!shareable || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	struct handle *h = handle_of(handle);
	bool ok = h && h->memory->own_file;
	int fd = ok ? fcntl(h->memory->fd, F_DUPFD_CLOEXEC, 0) : -1;
	unlock();
	if (!ok)
		return CUDA_ERROR_INVALID_VALUE;
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(int *)shareable = fd;
	return CUDA_SUCCESS;
}

static struct memory *memory_of_inode(uint64_t inode)
{
	for (size_t i = 0; i < handles.count; i++) {
		struct memory *m = ((struct handle *)handles.items[i])->memory;
		if (m->own_file && m->inode == inode)
			return m;
	}
	return NULL;
}

/* import_foreign registers memory of another process, where it stays counted. */
static struct memory *import_foreign(int fd, const struct stat *s, int device)
{
	struct memory *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->prop = (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
	};
	m->size = (uint64_t)s->st_size;
	m->own_file = m->imported = true;
	m->inode = s->st_ino;
	m->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (m->fd >= 0)
		return m;
	free(m);
	return NULL;
}

static struct handle *import(int fd, const struct stat *s, int device)
{
	struct memory *m = memory_of_inode(s->st_ino);
	if (!m)
		m = import_foreign(fd, s, device);
	struct handle *h = m ? handle_new(m) : NULL;
	if (m && !m->handles) {
		backing_free(m);
		free(m);
	}
	return h;
}

/* The pointer's value is the descriptor. The caller keeps it open or closes it. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type)
{
	ENTER(NEED_INIT);
	int fd = (int)(intptr_t)shareable, device = file_device(fd);
	struct stat s;
	if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat(fd, &s) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0)
		return CUDA_ERROR_UNKNOWN;
	lock();
	struct handle *h = import(fd, &s, device);
	if (h)
		*handle = h->entry.key;
	unlock();
	return h ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop, int option)
{
	ENTER(NEED_INIT);
	CUresult r = prop_check(prop);
	if (r != CUDA_SUCCESS)
		return r;
	if (!granularity || option < 0 || option > 1)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = GRANULARITY;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	ENTER(NEED_INIT);
	lock();
	struct handle *h = handle_of(handle);
	if (h && prop)
		*prop = h->memory->prop;
	unlock();
	return h && prop ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
