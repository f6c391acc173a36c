/* The memory of the devices: used, free, and its counts. */
#include "driver.h"

#include <stdlib.h>
#include <unistd.h>

static struct fake_counts *counts;
static struct fake_process *process;
static uint64_t limit; /* bytes of each device that may be in use */

/* process_retire removes a dead process and the device memory that it held. */
static void process_retire(struct fake_process *p)
{
	for (int d = 0; d < FAKE_DEVICES_MAX; d++)
		counts->device[d].used -= atomic_exchange(&p->used[d], 0);
}

/* process_attach takes a free entry of the table, else that of a dead process: so dead processes stay visible while there is room. */
static struct fake_process *process_attach(void)
{
	static struct fake_process unlisted;
	for (int i = 0; i < FAKE_PROCESSES_MAX; i++) {
		uint32_t none = 0;
		if (atomic_compare_exchange_strong(&counts->process[i].pid, &none, (uint32_t)getpid()))
			return &counts->process[i];
	}
	for (int i = 0; i < FAKE_PROCESSES_MAX; i++) {
		uint32_t pid = counts->process[i].pid;
		if (fake_process_lives(pid) ||
		    !atomic_compare_exchange_strong(&counts->process[i].pid, &pid, (uint32_t)getpid()))
			continue;
		process_retire(&counts->process[i]);
		return &counts->process[i];
	}
	return &unlisted;
}

void counts_attach(void)
{
	counts = fake_counts_map();
	process = process_attach();
	const char *text = getenv("GM_FAKE_LIMIT");
	limit = fake_capacity();
	if (text && strtoull(text, NULL, 0) < limit)
		limit = strtoull(text, NULL, 0);
}

static void raise_peak(_Atomic uint64_t *peak, uint64_t value)
{
	uint64_t seen = *peak;
	while (seen < value && !atomic_compare_exchange_weak(peak, &seen, value))
		;
}

void count_alloc(enum fake_kind kind, uint64_t size)
{
	struct fake_count *c = &counts->kind[kind];
	raise_peak(&c->peak, atomic_fetch_add(&c->current, size) + size);
	c->total += size;
	c->allocs++;
}

void count_free(enum fake_kind kind, uint64_t size)
{
	counts->kind[kind].current -= size;
	counts->kind[kind].frees++;
}

/* device_take adds first and checks afterwards, so that two processes cannot both get the last bytes. */
CUresult device_take(int device, enum fake_kind kind, uint64_t size, uint64_t charge)
{
	if (charge > limit)
		return CUDA_ERROR_OUT_OF_MEMORY;
	process->used[device] += charge;
	if (fake_used(counts, device) > limit) {
		process->used[device] -= charge;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct fake_device *d = &counts->device[device];
	raise_peak(&d->peak, atomic_fetch_add(&d->used, charge) + charge);
	count_alloc(kind, size);
	return CUDA_SUCCESS;
}

void device_give(int device, enum fake_kind kind, uint64_t size, uint64_t charge)
{
	process->used[device] -= charge;
	counts->device[device].used -= charge;
	count_free(kind, size);
}

static uint64_t small[FAKE_DEVICES_MAX]; /* bytes of the allocations that share pages */

static uint64_t small_rounded(uint64_t size) { return round_up(size, 512); }

/* Small allocations are assumed to fill the pages that they share without gaps. */
CUresult memory_take(int device, uint64_t size)
{
	if (size >= MIB)
		return device_take(device, FAKE_MEMORY, size, round_up(size, GRANULARITY));
	uint64_t after = small[device] + small_rounded(size);
	uint64_t pages = round_up(after, GRANULARITY) - round_up(small[device], GRANULARITY);
	CUresult r = device_take(device, FAKE_MEMORY, size, pages);
	if (r == CUDA_SUCCESS)
		small[device] = after;
	return r;
}

void memory_give(int device, uint64_t size)
{
	uint64_t pages = round_up(size, GRANULARITY);
	if (size < MIB) {
		uint64_t after = small[device] - small_rounded(size);
		pages = round_up(small[device], GRANULARITY) - round_up(after, GRANULARITY);
		small[device] = after;
	}
	device_give(device, FAKE_MEMORY, size, pages);
}

uint64_t device_free_bytes(int device)
{
	uint64_t used = fake_used(counts, device);
	return used < limit ? limit - used : 0;
}
