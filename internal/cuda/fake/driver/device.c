/* The devices, with the attributes of an H200. */
#include "driver.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool device_valid(CUdevice device) { return device >= 0 && device < fake_devices(); }

CUresult cuDeviceGetCount(int *count)
{
	ENTER(NEED_INIT);
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = fake_devices();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	ENTER(NEED_INIT);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	ENTER(NEED_INIT);
	if (!name || size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)size, "%s", fake_device_name);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	ENTER(NEED_INIT);
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	fake_uuid(device, (unsigned char *)uuid->bytes);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	ENTER(NEED_INIT);
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = fake_capacity();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int size, CUdevice device)
{
	ENTER(NEED_INIT);
	if (!text || size < 13)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	fake_pci_bus_id(device, text, (unsigned)size);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
	ENTER(NEED_INIT);
	if (!device || !text)
		return CUDA_ERROR_INVALID_VALUE;
	for (int d = 0; d < fake_devices(); d++) {
		char id[16];
		fake_pci_bus_id(d, id, sizeof id);
		if (!strcasecmp(id, text)) {
			*device = d;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	ENTER(NEED_INIT);
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device) || !device_valid(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*can = device != peer;
	return CUDA_SUCCESS;
}

/* Indexed by CUdevice_attribute; those not named here are 0. */
static const int attributes[] = {
	[1] = 1024,          /* threads of a block */
	[2] = 1024,          /* its extents */
	[3] = 1024,
	[4] = 64,
	[5] = 2147483647,    /* extents of a grid */
	[6] = 65535,
	[7] = 65535,
	[8] = 49152,         /* shared memory of a block */
	[9] = 65536,         /* constant memory */
	[10] = 32,           /* warp */
	[11] = 2147483647,   /* pitch */
	[12] = 65536,        /* registers of a block */
	[13] = 1980000,      /* clock, kHz */
	[14] = 512,          /* texture alignment */
	[15] = 1,            /* copies beside kernels */
	[16] = 132,          /* multiprocessors */
	[19] = 1,            /* maps host memory */
	[31] = 1,            /* concurrent kernels */
	[32] = 1,            /* ECC */
	[36] = 3201000,      /* memory clock, kHz */
	[37] = 6144,         /* bus width, bits */
	[38] = 62914560,     /* L2 */
	[39] = 2048,         /* threads of a multiprocessor */
	[40] = 3,            /* copy engines */
	[41] = 1,            /* unified addressing */
	[75] = 9,            /* compute capability */
	[78] = 1,            /* stream priorities */
	[81] = 233472,       /* shared memory of a multiprocessor */
	[82] = 65536,        /* its registers */
	[83] = 1,            /* managed memory */
	[89] = 1,            /* concurrent managed access */
	[91] = 1,            /* registered memory at the host's addresses */
	[95] = 1,            /* cooperative launch */
	[97] = 232448,       /* shared memory of a block, opted in */
	[102] = 1,           /* virtual memory management */
	[103] = 1,           /* handles as file descriptors */
	[106] = 32,          /* blocks of a multiprocessor */
	[115] = 1,           /* memory pools */
	[119] = 1,           /* handle types of pools: file descriptors */
	[160] = 0,
};

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	ENTER(NEED_INIT);
	if (!value || attribute <= 0 || (size_t)attribute >= sizeof attributes / sizeof *attributes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	enum { PCI_BUS_ID = 33 };
	*value = attribute == PCI_BUS_ID ? 0x1b + device : attributes[attribute];
	return CUDA_SUCCESS;
}
