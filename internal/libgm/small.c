/* Small requests of the default pool, served without Go: PyTorch's best fit by (stream, size, address) among the free blocks of segments
 * of 2 MiB, as in internal/blocks/torch.go, block for block. Go gives the segments and takes back those that are wholly free. */
#include "held.h"

#include <stdlib.h>

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

void gm_small_free(struct held *m, uint32_t i)
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
	gm_account_enter(d, size * GM_UNIT, b->requested);
	return b->address;
}

void *gm_small_get(int device, size_t bytes, uint64_t stream)
{
	gm_account_lock(device);
	uint64_t address = get(&gm_devices[device], &gm_held[device], bytes, stream);
	gm_account_unlock(device);
	return (void *)(uintptr_t)address;
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
	return lane && gm_held_room(device);
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
