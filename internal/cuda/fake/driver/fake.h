/* What the fake libraries share: the simulated machine, and the file of counts. */
#ifndef FAKE_H
#define FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MIB (UINT64_C(1) << 20)
#define FAKE_DRIVER_VERSION 13000
#define FAKE_DEVICES_MAX 8
#define FAKE_PROCESSES_MAX 32
#define FAKE_KINDS_MAX 16
#define FAKE_COUNTS_SIZE 4096
#define FAKE_COUNTS_MAGIC "gmfake01"

/* The kinds of memory that are counted, in requested bytes. */
enum fake_kind {
	FAKE_MEMORY,        /* cuMemAlloc, cuMemAllocPitch, arrays */
	FAKE_PHYSICAL,      /* cuMemCreate on a device, from creation until neither handles nor mappings are left */
	FAKE_CONTEXT,       /* the share of the driver in a device's memory */
	FAKE_MODULE,        /* code */
	FAKE_POOL_RESERVED, /* device memory that pools hold; an alloc is a growth, a free a release */
	FAKE_POOL_USED,     /* cuMemAllocAsync */
	FAKE_MANAGED,       /* cuMemAllocManaged, which takes nothing of a device */
	FAKE_PINNED_HOST,   /* cuMemHostAlloc, cuMemAllocHost, cuMemHostRegister */
	FAKE_HOST_PHYSICAL, /* cuMemCreate with a location in host memory */
	FAKE_KINDS,
};

struct fake_count {
	_Atomic uint64_t current, peak, total; /* bytes */
	_Atomic uint64_t allocs, frees;        /* successful ones */
};

/* Bytes of a device in use by all processes, including dead ones, as the device rounds them. */
struct fake_device {
	_Atomic uint64_t used, peak;
};

struct fake_process {
	_Atomic uint32_t pid; /* 0: free */
	uint32_t reserved;
	_Atomic uint64_t used[FAKE_DEVICES_MAX]; /* bytes of each device */
};

/* The file that GM_FAKE_COUNTS names, in the byte order of the machine. */
struct fake_counts {
	char magic[8];
	uint32_t version; /* 1 */
	uint32_t kinds, devices, processes;
	struct fake_count kind[FAKE_KINDS_MAX];
	struct fake_device device[FAKE_DEVICES_MAX];
	struct fake_process process[FAKE_PROCESSES_MAX];
};
_Static_assert(sizeof(struct fake_count) == 40, "struct fake_count");
_Static_assert(sizeof(struct fake_counts) == 3096, "struct fake_counts");
_Static_assert(sizeof(struct fake_counts) <= FAKE_COUNTS_SIZE, "struct fake_counts");

/* The machine. Devices are numbered from 0. */
int fake_devices(void);
uint64_t fake_capacity(void);                /* bytes of a device that a program may use */
void fake_uuid(int device, unsigned char uuid[16]);
void fake_pci_bus_id(int device, char *text, unsigned size);
extern const char fake_device_name[];

/* fake_counts_map maps the counts of this process, or private memory if GM_FAKE_COUNTS is unset or unusable. */
struct fake_counts *fake_counts_map(void);
/* fake_used returns the bytes of a device that living processes use. */
uint64_t fake_used(struct fake_counts *counts, int device);
/* fake_process_lives returns whether a process in the table still runs. */
bool fake_process_lives(uint32_t pid);

#endif
