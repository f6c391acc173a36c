/* The simulated machine, as the environment describes it. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

const char fake_device_name[] = "NVIDIA H200";

int fake_devices(void)
{
	const char *text = getenv("GM_FAKE_DEVICES");
	int n = text ? atoi(text) : 1;
	if (n < 0)
		return 0;
	return n > FAKE_DEVICES_MAX ? FAKE_DEVICES_MAX : n;
}

uint64_t fake_capacity(void)
{
	const char *text = getenv("GM_FAKE_CAPACITY");
	return text ? strtoull(text, NULL, 0) : UINT64_C(141) << 30;
}

void fake_uuid(int device, unsigned char uuid[16])
{
	for (int i = 0; i < 16; i++)
		uuid[i] = (unsigned char)(0x6d + 29 * i);
	uuid[15] = (unsigned char)device;
}

void fake_pci_bus_id(int device, char *text, unsigned size)
{
	snprintf(text, size, "0000:%02X:00.0", (0x1b + device) & 0xff);
}
