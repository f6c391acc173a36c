/* NVML over the file of counts: what all processes use of the simulated devices. */
#include "nvml.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fake.h"

#define RESERVED_BYTES (640 * MIB) /* of each device, for firmware and page tables */

struct nvmlDevice_st { int ordinal; };

static struct nvmlDevice_st devices[FAKE_DEVICES_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int users;
static struct fake_counts *counts;

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	pthread_mutex_lock(&mutex);
	if (!counts)
		counts = fake_counts_map();
	for (int d = 0; d < FAKE_DEVICES_MAX; d++)
		devices[d].ordinal = d;
	users++;
	pthread_mutex_unlock(&mutex);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void)
{
	pthread_mutex_lock(&mutex);
	nvmlReturn_t r = users > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
	if (users > 0)
		users--;
	pthread_mutex_unlock(&mutex);
	return r;
}

static nvmlReturn_t initialised(void)
{
	pthread_mutex_lock(&mutex);
	bool ok = users > 0;
	pthread_mutex_unlock(&mutex);
	return ok ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

/* ENTER returns an error without nvmlInit, or if a required argument is missing. */
#define ENTER(argument)                                        \
	do {                                                   \
		if (initialised() != NVML_SUCCESS)             \
			return NVML_ERROR_UNINITIALIZED;       \
		if (!(argument))                               \
			return NVML_ERROR_INVALID_ARGUMENT;    \
	} while (0)

static bool known(nvmlDevice_t d) { return d >= devices && d < devices + fake_devices(); }

const char *nvmlErrorString(nvmlReturn_t error)
{
	switch (error) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_UNINITIALIZED:
		return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_NOT_FOUND:
		return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
		return "Argument version mismatch";
	case NVML_ERROR_UNKNOWN:
		break;
	}
	return "Unknown Error";
}

static nvmlReturn_t text_out(char *out, unsigned size, const char *text)
{
	if (strlen(text) >= size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, text);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned size)
{
	ENTER(text);
	return text_out(text, size, "580.00.fake");
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *text, unsigned size)
{
	ENTER(text);
	return text_out(text, size, "13.580.00");
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	ENTER(version);
	*version = FAKE_DRIVER_VERSION;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	ENTER(count);
	*count = (unsigned)fake_devices();
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	ENTER(device && index < (unsigned)fake_devices());
	*device = &devices[index];
	return NVML_SUCCESS;
}

static void uuid_text(int device, char text[48])
{
	unsigned char u[16];
	fake_uuid(device, u);
	snprintf(text, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2],
	         u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	ENTER(uuid && device);
	for (int d = 0; d < fake_devices(); d++) {
		char text[48];
		uuid_text(d, text);
		if (!strcmp(text, uuid)) {
			*device = &devices[d];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

/* NVML writes the domain with eight digits and reads it with four, too. */
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device)
{
	ENTER(id && device);
	const char *rest = strlen(id) == 16 && !strncmp(id, "0000", 4) ? id + 4 : id;
	for (int d = 0; d < fake_devices(); d++) {
		char text[16];
		fake_pci_bus_id(d, text, sizeof text);
		if (!strcasecmp(text, rest)) {
			*device = &devices[d];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *text, unsigned size)
{
	ENTER(known(device) && text);
	return text_out(text, size, fake_device_name);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned size)
{
	ENTER(known(device) && text);
	char uuid[48];
	uuid_text(device->ordinal, uuid);
	return text_out(text, size, uuid);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	ENTER(known(device) && index);
	*index = (unsigned)device->ordinal;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
	return nvmlDeviceGetIndex(device, minor);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	ENTER(known(device) && memory);
	if (memory->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	memory->reserved = RESERVED_BYTES;
	memory->total = fake_capacity() + RESERVED_BYTES;
	memory->used = fake_used(counts, device->ordinal);
	memory->free = fake_capacity() - memory->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	ENTER(known(device) && memory);
	nvmlMemory_v2_t m = {.version = nvmlMemory_v2};
	nvmlReturn_t r = nvmlDeviceGetMemoryInfo_v2(device, &m);
	*memory = (nvmlMemory_t){m.total, m.free, m.used + m.reserved};
	return r;
}

/* processes lists the living processes that use the device, as far as there is room, and returns their number. */
static unsigned processes(int device, nvmlProcessInfo_t *infos, unsigned room)
{
	unsigned n = 0;
	for (int i = 0; i < FAKE_PROCESSES_MAX; i++) {
		uint32_t pid = counts->process[i].pid;
		uint64_t used = counts->process[i].used[device];
		if (!pid || !used || !fake_process_lives(pid))
			continue;
		if (n < room)
			infos[n] = (nvmlProcessInfo_t){pid, used, UINT32_MAX, UINT32_MAX};
		n++;
	}
	return n;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *infos)
{
	ENTER(known(device) && n);
	unsigned room = infos ? *n : 0;
	*n = processes(device->ordinal, infos, room);
	return *n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *infos)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, n, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v1_t *infos)
{
	ENTER(known(device) && n);
	nvmlProcessInfo_t all[FAKE_PROCESSES_MAX];
	unsigned room = infos ? *n : 0;
	*n = processes(device->ordinal, all, FAKE_PROCESSES_MAX);
	if (*n > room)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < *n; i++)
		infos[i] = (nvmlProcessInfo_v1_t){all[i].pid, all[i].usedGpuMemory};
	return NVML_SUCCESS;
}
