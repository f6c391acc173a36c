/* Who holds what: the live requests of a device whose free is nothing special, small or large, by address. Others are in Go's ledger. */
#include "held.h"

#include <stdlib.h>
#include <string.h>

struct held gm_held[GM_DEVICES];

/* give frees a block, or leaves it to Go. */
static enum gm_fate give(int device, struct slot *s)
{
	struct gm_device *d = &gm_devices[device];
	struct held *m = &gm_held[device];
	uint32_t i = s->block;
	struct block *b = &m->blocks[i];
	if (b->state == GM_LARGE_BLOCK && b->rank >= 0 && atomic_load_explicit(&d->keeps, memory_order_relaxed)) {
		gm_warm_put(device, i);
		return GM_FREED;
	}
	if (b->state == GM_LENT_BLOCK) {
		b->state = GM_AWAITED_BLOCK;
		return GM_COUNTED;
	}
	let_go(m, s);
	if (b->state != GM_LIVE_BLOCK) {
		put_spare(m, i);
		return GM_COUNTED;
	}
	count(d, -(b->size * GM_UNIT));
	gm_small_free(m, i);
	return GM_FREED;
}

enum gm_fate gm_held_put(int device, uint64_t address)
{
	struct gm_device *d = &gm_devices[device];
	struct held *m = &gm_held[device];
	enum gm_fate fate = GM_UNKNOWN;
	gm_account_lock(device);
	struct slot *s = find(m, address);
	struct block *b = s ? &m->blocks[s->block] : NULL;
	if (b && b->state != GM_AWAITED_BLOCK && b->state != GM_WARM_BLOCK) {
		gm_account_leave(d->account, taken_by(b), b->requested);
		fate = give(device, s);
	}
	gm_account_unlock(device);
	return fate;
}

void gm_held_return(int device, uint64_t address)
{
	struct held *m = &gm_held[device];
	gm_account_lock(device);
	struct slot *s = find(m, address);
	if (s && m->blocks[s->block].state == GM_AWAITED_BLOCK) {
		m->blocks[s->block].state = GM_LIVE_BLOCK;
		give(device, s);
	}
	gm_account_unlock(device);
}

static struct gm_view view_of(const struct block *b)
{
	return (struct gm_view){b->address, b->stream, b->requested, taken_by(b), b->state, b->before == 0};
}

bool gm_held_find(int device, uint64_t address, bool lend, struct gm_view *view)
{
	struct held *m = &gm_held[device];
	gm_account_lock(device);
	struct slot *s = find(m, address);
	struct block *b = s ? &m->blocks[s->block] : NULL;
	bool held = b && (b->state == GM_LIVE_BLOCK || b->state == GM_LARGE_BLOCK);
	if (held) {
		*view = view_of(b);
		if (lend)
			b->state = b->state == GM_LIVE_BLOCK ? GM_LENT_BLOCK : GM_SPECIAL_BLOCK;
	}
	gm_account_unlock(device);
	return held;
}

/* more_slots and more_blocks double what there is. Only the holder of the device's lock adds to it. */
static bool more_slots(int device)
{
	struct held *m = &gm_held[device];
	size_t n = m->slots ? mask(m) + 1 : 0, more = n ? 2 * n : SLOTS_MIN;
	struct slot *old = m->slots, *slots = calloc(more, sizeof *slots);
	if (!slots)
		return false;
	gm_account_lock(device);
	m->slots = slots;
	m->shift = 64 - (unsigned)__builtin_ctzll(more);
	m->held = 0;
	for (size_t i = 0; i < n; i++) {
		if (old[i].address)
			hold(m, old[i].address, old[i].block);
		if (old[i].root)
			gm_warm_place(m, old[i].root);
	}
	gm_account_unlock(device);
	free(old);
	return true;
}

static bool more_blocks(int device)
{
	struct held *m = &gm_held[device];
	uint32_t n = m->block_count, more = n ? 2 * n : BLOCKS_MIN;
	struct block *old = m->blocks, *blocks = n < UINT32_MAX / 2 ? calloc(more, sizeof *blocks) : NULL;
	if (!blocks)
		return false;
	gm_account_lock(device);
	if (n)
		memcpy(blocks, old, n * sizeof *blocks);
	m->blocks = blocks;
	m->block_count = more;
	for (uint32_t i = more - 1; i >= n && i; i--)
		put_spare(m, i);
	gm_account_unlock(device);
	free(old);
	return true;
}

bool gm_held_room(int device)
{
	struct held *m = &gm_held[device];
	gm_account_lock(device);
	bool on = m->on, spare = m->spares >= 2, slot = has_slot(m);
	gm_account_unlock(device);
	return on && (spare || more_blocks(device)) && (slot || more_slots(device));
}

void gm_held_add(int device, uint64_t address, size_t bytes, int64_t taken, uint64_t stream, bool special, int32_t rank)
{
	struct held *m = &gm_held[device];
	gm_account_lock(device);
	uint32_t i = take_spare(m);
	m->blocks[i] = (struct block){
		.address = address, .stream = stream, .requested = (int64_t)bytes, .taken = taken, .rank = rank,
		.state = special ? GM_SPECIAL_BLOCK : GM_LARGE_BLOCK};
	hold(m, address, i);
	gm_account_enter(&gm_devices[device], taken, (int64_t)bytes);
	gm_account_unlock(device);
}

void gm_held_drop(int device, uint64_t address)
{
	struct held *m = &gm_held[device];
	gm_account_lock(device);
	struct slot *s = find(m, address);
	struct block *b = s ? &m->blocks[s->block] : NULL;
	if (b && b->state == GM_SPECIAL_BLOCK) {
		gm_account_leave(gm_devices[device].account, taken_by(b), b->requested);
		give(device, s);
	}
	gm_account_unlock(device);
}

size_t gm_held_view(int device, struct gm_view *views, size_t n)
{
	struct held *m = &gm_held[device];
	size_t count = 0;
	gm_account_lock(device);
	for (uint32_t first = 1; first < m->block_count; first++) {
		const struct block *b = &m->blocks[first];
		if (b->state == GM_NO_BLOCK || b->state == GM_WARM_BLOCK || b->before)
			continue;
		for (uint32_t i = first; i; i = m->blocks[i].after, count++)
			if (count < n)
				views[count] = view_of(&m->blocks[i]);
	}
	gm_account_unlock(device);
	return count;
}

void gm_held_begin(int device)
{
	gm_account_lock(device);
	gm_held[device].on = true;
	gm_account_unlock(device);
}

void gm_held_end(int device)
{
	struct held *m = &gm_held[device];
	gm_account_lock(device);
	m->on = false;
	m->held = m->warm_first = m->warm_last = 0;
	atomic_store(&gm_devices[device].keeps, 0);
	atomic_store(&gm_devices[device].warm, 0);
	if (m->slots)
		memset(m->slots, 0, (mask(m) + 1) * sizeof *m->slots);
	gm_account_unlock(device);
}
