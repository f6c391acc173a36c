/* Small requests of the default pool, served without Go: PyTorch's best fit by (stream, size, address) among the free blocks of segments
 * of 2 MiB, as in internal/blocks/torch.go, block for block. Go gives the segments and takes back those that are wholly free.
 *
 * Here is also who holds what: the live requests of a device whose free is nothing special, small or large. Others are in Go's ledger. */
#include "held.h"

#include <stdlib.h>
#include <string.h>

struct held gm_held[GM_DEVICES];

static struct lane *lane_of(struct held *m, uint64_t stream)
{
	if (m->recent < m->lane_count && m->lanes[m->recent]->stream == stream)
		return m->lanes[m->recent];
	for (int i = 0; i < m->lane_count; i++)
		if (m->lanes[i]->stream == stream)
			return m->lanes[m->recent = i];
	return NULL;
}

static void add_free(struct held *m, struct lane *l, uint32_t i)
{
	struct block *b = &m->blocks[i];
	b->state = GM_FREE_BLOCK;
	heap_add(m->blocks, &l->root[b->size], i);
	l->filled[b->size / 64] |= UINT64_C(1) << b->size % 64;
}

static void remove_free(struct held *m, struct lane *l, uint32_t i)
{
	uint32_t size = m->blocks[i].size, *root = &l->root[size];
	heap_remove(m->blocks, root, i);
	if (!*root)
		l->filled[size / 64] &= ~(UINT64_C(1) << size % 64);
}

/* best returns the free block of at least that size that is the smallest, and of those the one at the lowest address. */
static uint32_t best(const struct lane *l, uint32_t size)
{
	uint32_t word = size / 64;
	uint64_t bits = l->filled[word] >> size % 64 << size % 64;
	while (!bits && ++word < WORDS)
		bits = l->filled[word];
	return bits ? l->root[64 * word + (uint32_t)__builtin_ctzll(bits)] : 0;
}

/* split makes a block shorter; the rest becomes free. */
static void split(struct held *m, struct lane *l, uint32_t i, uint32_t size)
{
	uint32_t rest = take_spare(m);
	struct block *b = &m->blocks[i], *r = &m->blocks[rest];
	*r = (struct block){
		.address = b->address + size * (uint64_t)GM_UNIT, .stream = b->stream, .size = b->size - size, .before = i, .after = b->after};
	if (r->after)
		m->blocks[r->after].before = rest;
	b->size = size;
	b->after = rest;
	add_free(m, l, rest);
}

/* absorb adds a free neighbour, the one after a block, to the block. */
static void absorb(struct held *m, uint32_t i, uint32_t after)
{
	struct block *b = &m->blocks[i], *n = &m->blocks[after];
	b->size += n->size;
	b->after = n->after;
	if (b->after)
		m->blocks[b->after].before = i;
	put_spare(m, after);
}

static void make_free(struct held *m, uint32_t i)
{
	struct lane *l = lane_of(m, m->blocks[i].stream);
	uint32_t before = m->blocks[i].before, after = m->blocks[i].after;
	if (after && m->blocks[after].state == GM_FREE_BLOCK) {
		remove_free(m, l, after);
		absorb(m, i, after);
	}
	if (before && m->blocks[before].state == GM_FREE_BLOCK) {
		remove_free(m, l, before);
		absorb(m, before, i);
		i = before;
	}
	add_free(m, l, i);
}

/* get leaves one spare block for whoever holds the device's lock. */
static uint64_t get(struct gm_device *d, struct held *m, size_t bytes, uint64_t stream)
{
	uint32_t size = (uint32_t)((bytes + GM_UNIT - 1) / GM_UNIT), i;
	struct lane *l = m->on && m->spares > 1 && has_slot(m) ? lane_of(m, stream) : NULL;
	if (!l || !(i = best(l, size)))
		return 0;
	struct block *b = &m->blocks[i];
	remove_free(m, l, i);
	if (b->size > size)
		split(m, l, i, size);
	b->state = GM_LIVE_BLOCK;
	b->requested = (int64_t)bytes;
	hold(m, b->address, i);
	count(d, size * GM_UNIT);
	gm_account_enter(d->account, size * GM_UNIT, b->requested);
	return b->address;
}

void *gm_small_get(int device, size_t bytes, uint64_t stream)
{
	gm_account_lock(device);
	uint64_t address = get(&gm_devices[device], &gm_held[device], bytes, stream);
	gm_account_unlock(device);
	return (void *)(uintptr_t)address;
}

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
	make_free(m, i);
	return GM_FREED;
}

enum gm_fate gm_small_put(int device, uint64_t address)
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

void gm_small_return(int device, uint64_t address)
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

bool gm_small_find(int device, uint64_t address, bool lend, struct gm_view *view)
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

/* add_lane begins a lane, in place of one without segments where there are many. */
static struct lane *add_lane(struct held *m, uint64_t stream)
{
	struct lane *l = NULL;
	for (int i = 0; m->lane_count == LANES && i < LANES && !l; i++)
		l = m->lanes[i]->segments ? NULL : m->lanes[i];
	if (!l && m->lane_count < LANES && (l = calloc(1, sizeof *l)))
		m->lanes[m->lane_count++] = l;
	if (l)
		l->stream = stream;
	return l;
}

bool gm_small_room(int device, uint64_t stream)
{
	struct held *m = &gm_held[device];
	gm_account_lock(device);
	bool lane = m->on && (lane_of(m, stream) || add_lane(m, stream));
	gm_account_unlock(device);
	return lane && gm_small_holds(device);
}

bool gm_small_holds(int device)
{
	struct held *m = &gm_held[device];
	gm_account_lock(device);
	bool on = m->on, spare = m->spares >= 2, slot = has_slot(m);
	gm_account_unlock(device);
	return on && (spare || more_blocks(device)) && (slot || more_slots(device));
}

void gm_small_hold(int device, uint64_t address, size_t bytes, int64_t taken, uint64_t stream, bool special, int32_t rank)
{
	struct held *m = &gm_held[device];
	gm_account_lock(device);
	uint32_t i = take_spare(m);
	m->blocks[i] = (struct block){
		.address = address, .stream = stream, .requested = (int64_t)bytes, .taken = taken, .rank = rank,
		.state = special ? GM_SPECIAL_BLOCK : GM_LARGE_BLOCK};
	hold(m, address, i);
	gm_account_enter(gm_devices[device].account, taken, (int64_t)bytes);
	gm_account_unlock(device);
}

void gm_small_drop(int device, uint64_t address)
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

bool gm_small_add(int device, uint64_t address, uint64_t stream)
{
	struct held *m = &gm_held[device];
	gm_account_lock(device);
	struct lane *l = m->on && m->spares ? lane_of(m, stream) : NULL;
	if (l) {
		uint32_t i = take_spare(m);
		m->blocks[i] = (struct block){.address = address, .stream = stream, .size = GM_SEGMENT_UNITS};
		l->segments++;
		add_free(m, l, i);
	}
	gm_account_unlock(device);
	return l;
}

uint64_t gm_small_remove(int device)
{
	struct held *m = &gm_held[device];
	uint64_t address = 0;
	gm_account_lock(device);
	for (int lane = 0; lane < m->lane_count && !address; lane++) {
		struct lane *l = m->lanes[lane];
		uint32_t i = l->root[GM_SEGMENT_UNITS];
		if (!i)
			continue;
		address = m->blocks[i].address;
		remove_free(m, l, i);
		put_spare(m, i);
		l->segments--;
	}
	gm_account_unlock(device);
	return address;
}

size_t gm_small_view(int device, struct gm_view *views, size_t n)
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

void gm_small_begin(int device)
{
	gm_account_lock(device);
	gm_held[device].on = true;
	gm_account_unlock(device);
}

void gm_small_end(int device)
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
