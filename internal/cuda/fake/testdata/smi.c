/* Prints what NVML says of the devices. */
#include "check.h"
#include "nvml.h"

int main(void)
{
	unsigned count;
	GIVES(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2(&count));
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetCount_v2(&count));
	for (unsigned i = 0; i < count; i++) {
		nvmlDevice_t device, same;
		nvmlMemory_t v1;
		nvmlMemory_v2_t v2;
		nvmlProcessInfo_t infos[8];
		nvmlProcessInfo_v1_t infos1[8];
		char name[96], uuid[96];
		unsigned index, n = 8, n1 = 8, none = 0;
		v2.version = nvmlMemory_v2;
		OK(nvmlDeviceGetHandleByIndex_v2(i, &device));
		OK(nvmlDeviceGetIndex(device, &index));
		OK(nvmlDeviceGetName(device, name, sizeof name));
		OK(nvmlDeviceGetUUID(device, uuid, sizeof uuid));
		OK(nvmlDeviceGetHandleByUUID(uuid, &same));
		OK(nvmlDeviceGetMemoryInfo(device, &v1));
		OK(nvmlDeviceGetMemoryInfo_v2(device, &v2));
		CHECK(index == i && same == device);
		CHECK(v1.total == v2.total && v1.used == v2.used + v2.reserved && v1.free + v1.used == v1.total);
		OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &n, infos));
		OK(nvmlDeviceGetComputeRunningProcesses(device, &n1, infos1));
		CHECK(n == n1);
		GIVES(n ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS,
		      nvmlDeviceGetComputeRunningProcesses_v3(device, &none, NULL));
		printf("%u %s %s used %llu", i, name, uuid, v2.used);
		for (unsigned p = 0; p < n; p++)
			printf(" %u:%llu", infos[p].pid, infos1[p].usedGpuMemory);
		putchar('\n');
	}
	OK(nvmlShutdown());
	return 0;
}
