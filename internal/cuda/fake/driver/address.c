/* Address ranges, and physical memory mapped in them. */
#include "physical.h"
#include "races.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct reservation {
	struct entry range;
};

struct mapping {
	struct entry range;
	struct handle *handle;
	CUmemAccess_flags access[FAKE_DEVICES_MAX + 1]; /* by device, and of the host */
};

static struct table reservations, mappings;

static void *pointer(uint64_t address) { return (void *)(uintptr_t)address; }

/* addresses_new finds size free bytes with an alignment: it maps more and unmaps the rest. */
static uint64_t addresses_new(uint64_t size, uint64_t alignment, uint64_t hint)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	if (hint && hint % alignment == 0) {
		void *p = mmap(pointer(hint), size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
		if (p != MAP_FAILED)
			return (uintptr_t)p;
	}
	uint8_t *p = mmap(NULL, size + alignment, PROT_NONE, flags, -1, 0);
	if (p == MAP_FAILED)
		return 0;
	uint8_t *start = pointer(round_up((uintptr_t)p, alignment));
	if (start > p)
		munmap(p, (size_t)(start - p));
	munmap(start + size, (size_t)(p + alignment - start));
	return (uintptr_t)start;
}

CUresult cuMemAddressReserve(CUdeviceptr *p, size_t size, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	ENTER(NEED_INIT);
	if (!p || flags || size == 0 || size % GRANULARITY || (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < GRANULARITY)
		alignment = GRANULARITY;
	struct reservation *r = calloc(1, sizeof *r);
	uint64_t address = r && size + alignment > size ? addresses_new(size, alignment, hint) : 0;
	if (!address) {
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r->range = (struct entry){address, size};
	lock();
	bool ok = table_insert(&reservations, &r->range);
	unlock();
	if (!ok) {
		munmap(pointer(address), size);
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*p = address;
	return CUDA_SUCCESS;
}

/* mapped_within returns whether any byte of a range is mapped. */
static bool mapped_within(uint64_t address, uint64_t size)
{
	size_t i = table_from(&mappings, address);
	return table_covering(&mappings, address) || (i < mappings.count && mappings.items[i]->key < address + size);
}

CUresult cuMemAddressFree(CUdeviceptr p, size_t size)
{
	ENTER(NEED_INIT);
	lock();
	struct reservation *r = table_at(&reservations, p);
	bool ok = r && r->range.size == size && !mapped_within(p, size);
	if (ok) {
		table_remove(&reservations, &r->range);
		munmap(pointer(p), size);
		free(r);
	}
	unlock();
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* reserved_range returns whether a range lies within one reservation. */
static bool reserved_range(uint64_t address, uint64_t size)
{
	struct entry *e = table_covering(&reservations, address);
	return e && size <= e->size && address - e->key <= e->size - size;
}

static CUresult map(uint64_t address, uint64_t size, uint64_t offset, CUmemGenericAllocationHandle handle)
{
	struct handle *h = handle_of(handle);
	if (!h || !reserved_range(address, size) || mapped_within(address, size))
		return CUDA_ERROR_INVALID_VALUE;
	if (offset != 0 || size != h->memory->size)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct mapping *mapping = calloc(1, sizeof *mapping);
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mapping->range = (struct entry){address, size};
	mapping->handle = h;
	void *p = mmap(pointer(address), size, PROT_NONE, MAP_FIXED | MAP_SHARED | MAP_NORESERVE, h->memory->fd,
	               (off_t)h->memory->offset);
	if (p == MAP_FAILED || !table_insert(&mappings, &mapping->range)) {
		free(mapping);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	h->mappings++;
	return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr p, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
	ENTER(NEED_INIT);
	if (flags || size == 0 || p % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	CUresult r = map(p, size, offset, handle);
	unlock();
	return r;
}

/* whole_mappings finds the mappings within a range and returns their bytes; 0 if one of them is only partly in the range. */
static uint64_t whole_mappings(uint64_t address, uint64_t size, size_t *first, size_t *count)
{
	uint64_t bytes = 0;
	struct entry *before = table_covering(&mappings, address);
	*first = table_from(&mappings, address);
	*count = 0;
	if (before && before->key != address)
		return 0;
	for (size_t i = *first; i < mappings.count && mappings.items[i]->key < address + size; i++) {
		struct entry *e = mappings.items[i];
		if (e->key + e->size > address + size)
			return 0;
		bytes += e->size;
		++*count;
	}
	return bytes;
}

static void unmap(struct mapping *mapping)
{
	races_end(mapping->range.key, mapping->range.size, entered);
	mmap(pointer(mapping->range.key), mapping->range.size, PROT_NONE,
	     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	table_remove(&mappings, &mapping->range);
	handle_unmapped(mapping->handle);
	free(mapping);
}

/* As with the real driver, parts of the range may be unmapped. */
CUresult cuMemUnmap(CUdeviceptr p, size_t size)
{
	ENTER(NEED_INIT);
	size_t first, n;
	lock();
	bool ok = reserved_range(p, size) && (whole_mappings(p, size, &first, &n) || !mapped_within(p, size));
	for (size_t i = 0; ok && i < n; i++)
		unmap((struct mapping *)mappings.items[first]);
	unlock();
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool on_device(const CUmemLocation *l) { return l->type == CU_MEM_LOCATION_TYPE_DEVICE; }

static CUresult access_check(const CUmemAccessDesc *access, size_t n)
{
	if (!access || n == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (on_device(&access[i].location) && !device_valid(access[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (access[i].location.type <= CU_MEM_LOCATION_TYPE_INVALID ||
		    access[i].location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ||
		    (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		     access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUmemAccess_flags *access_of(struct mapping *m, const CUmemLocation *l)
{
	return &m->access[on_device(l) ? l->id : FAKE_DEVICES_MAX];
}

/* access_all is the union of the devices' access, which the process gets to the memory that represents the range. */
static unsigned access_all(const struct mapping *m)
{
	unsigned all = 0;
	for (int i = 0; i <= FAKE_DEVICES_MAX; i++)
		all |= m->access[i];
	return all;
}

static void set_access(struct mapping *m, const CUmemAccessDesc *access, size_t n)
{
	unsigned before = access_all(m);
	for (size_t i = 0; i < n; i++)
		*access_of(m, &access[i].location) = access[i].flags;
	unsigned all = access_all(m);
	if (all != before)
		mprotect(pointer(m->range.key), m->range.size,
		         (all & CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : 0) | (all & 2 ? PROT_WRITE : 0));
}

CUresult cuMemSetAccess(CUdeviceptr p, size_t size, const CUmemAccessDesc *access, size_t n)
{
	ENTER(NEED_INIT);
	CUresult r = access_check(access, n);
	if (r != CUDA_SUCCESS)
		return r;
	size_t first, count;
	lock();
	bool ok = size && whole_mappings(p, size, &first, &count) == size;
	for (size_t i = 0; ok && i < count; i++)
		set_access((struct mapping *)mappings.items[first + i], access, n);
	unlock();
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr p)
{
	ENTER(NEED_INIT);
	if (!flags || !location || (on_device(location) && !device_valid(location->id)))
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	struct mapping *m = table_covering(&mappings, p);
	if (m)
		*flags = *access_of(m, location);
	unlock();
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *p)
{
	ENTER(NEED_INIT);
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	struct mapping *m = table_covering(&mappings, (uintptr_t)p);
	if (m) {
		m->handle->references++;
		*handle = m->handle->entry.key;
	}
	unlock();
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

uint64_t memory_at(uint64_t address, uint64_t size, uint64_t *part)
{
	struct mapping *m = table_covering(&mappings, address);
	size_t i = table_from(&mappings, address);
	uint64_t left = m ? m->range.key + m->range.size - address : i < mappings.count ? mappings.items[i]->key - address : size;
	*part = left < size ? left : size;
	return m ? m->handle->memory->shadow + (address - m->range.key) : address;
}

struct entry *mapping_covering(uint64_t address) { return table_covering(&mappings, address); }

struct entry *reservation_covering(uint64_t address) { return table_covering(&reservations, address); }

bool mapped_range(int device, uint64_t address, uint64_t size)
{
	uint64_t end;
	if (__builtin_add_overflow(address, size, &end))
		return false;
	while (address < end) {
		struct mapping *m = table_covering(&mappings, address);
		if (!m || !m->access[device])
			return false;
		address = m->range.key + m->range.size;
	}
	return true;
}

int mapped_device(uint64_t address)
{
	struct mapping *m = table_covering(&mappings, address);
	const CUmemLocation *l = m ? &m->handle->memory->prop.location : NULL;
	return l && on_device(l) ? l->id : -1;
}
