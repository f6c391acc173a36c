/* Physical memory and its mappings. */
#include "tell.h"

int cuMemCreate(uint64_t *handle, size_t size, const struct cu_allocation_prop *prop, uint64_t flags)
{
	int result = REAL(cuMemCreate, handle, size, prop, flags);
	int here = prop && prop->location.type == CU_LOCATION_DEVICE;
	int device = here ? prop->location.id : GM_HERE;
	struct gm_record r = {.kind = GM_CREATE, .device = (int16_t)device, .a = GOT(result, handle), .b = size, .c = !here};
	return gm_came(result, r, CALLER);
}

int cuMemRetainAllocationHandle(uint64_t *handle, void *address)
{
	int result = REAL(cuMemRetainAllocationHandle, handle, address);
	return gm_came(result, (struct gm_record){.kind = GM_RETAIN, .device = -1, .a = GOT(result, handle), .b = (uint64_t)address}, CALLER);
}

int cuMemRelease(uint64_t handle)
{
	int told = gm_going(GM_RELEASE, handle, 0, 0, CALLER);
	return gm_gone(REAL(cuMemRelease, handle), told, GM_RELEASE_FAILED, handle, 0, CALLER);
}

int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, uint64_t flags)
{
	int result = REAL(cuMemMap, address, size, offset, handle, flags);
	struct gm_record r = {.kind = GM_MAP, .device = GM_HERE, .a = address, .b = size, .c = handle, .d = offset};
	return gm_came(result, r, CALLER);
}

int cuMemUnmap(uint64_t address, size_t size)
{
	int told = gm_going(GM_UNMAP, address, size, 0, CALLER);
	return gm_gone(REAL(cuMemUnmap, address, size), told, GM_UNMAP_FAILED, address, size, CALLER);
}
