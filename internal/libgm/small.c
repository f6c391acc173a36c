/* Small requests of the default pool, served without Go: PyTorch's best fit by (stream, size, address) among the free blocks of segments
 * of 2 MiB, as in internal/blocks/torch.go, block for block. Go gives the segments and takes back those that are wholly free.
 *
 * Here is also who holds what: the live requests of a device whose free is nothing special, small or large. Others are in Go's ledger. */
#include "libgm.h"

#include <stdlib.h>
#include <string.h>

enum { LANES = 64, SLOTS_MIN = 1 << 12, BLOCKS_MIN = 1 << 11, WORDS = GM_SEGMENT_UNITS / 64 + 1 };

/* A block, by its number; 0 is none. */
struct block {
	uint64_t address, stream;
	int64_t requested; /* bytes */
	int64_t taken; /* bytes, of one that Go serves */
	uint32_t size; /* in units, of one in a segment */
	enum gm_block_state state;
	uint32_t before, after; /* the neighbours in a segment */
	uint32_t child, next, back; /* among the free blocks of a size: the first child, the next child of the same one, who points here */
};

/* The free blocks of a stream: for each size a pairing heap by address. */
struct lane {
	uint64_t stream;
	uint32_t segments;
	uint64_t filled[WORDS]; /* a bit for each size that has blocks */
	uint32_t root[GM_SEGMENT_UNITS + 1];
};

/* A slot of a hash table by address with linear probing, at most half full. */
struct slot {
	uint64_t address; /* 0: none */
	uint32_t block;
};

struct small {
	bool on;
	int lane_count, recent;
	struct lane *lanes[LANES];
	struct block *blocks;
	uint32_t block_count, spare, spares; /* spare is a list through next */
	struct slot *slots;
	unsigned shift; /* 64 - log2 of the number of slots */
	size_t held;
};

static struct small smalls[GM_DEVICES];

static size_t mask(const struct small *m) { return ((size_t)1 << (64 - m->shift)) - 1; }

static size_t home(const struct small *m, uint64_t address) { return address * UINT64_C(0x9e3779b97f4a7c15) >> m->shift; }

static struct slot *find(const struct small *m, uint64_t address)
{
	if (!m->slots)
		return NULL;
	for (size_t i = home(m, address);; i = (i + 1) & mask(m)) {
		if (m->slots[i].address == address)
			return &m->slots[i];
		if (!m->slots[i].address)
			return NULL;
	}
}

static void hold(struct small *m, uint64_t address, uint32_t block)
{
	size_t i = home(m, address);
	while (m->slots[i].address)
		i = (i + 1) & mask(m);
	m->slots[i] = (struct slot){address, block};
	m->held++;
}

/* let_go empties a slot, into which a later one may move. */
static void let_go(struct small *m, struct slot *s)
{
	size_t hole = (size_t)(s - m->slots), last = mask(m);
	for (size_t i = (hole + 1) & last; m->slots[i].address; i = (i + 1) & last) {
		size_t h = home(m, m->slots[i].address);
		if (((i - h) & last) >= ((i - hole) & last)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole].address = 0;
	m->held--;
}

static bool has_slot(const struct small *m) { return m->slots && 2 * (m->held + 1) <= mask(m) + 1; }

static uint32_t take_spare(struct small *m)
{
	uint32_t i = m->spare;
	m->spare = m->blocks[i].next;
	m->spares--;
	return i;
}

static int64_t taken_by(const struct block *b) { return b->size ? b->size * GM_UNIT : b->taken; }

static void put_spare(struct small *m, uint32_t i)
{
	m->blocks[i] = (struct block){.state = GM_NO_BLOCK, .next = m->spare};
	m->spare = i;
	m->spares++;
}

static struct lane *lane_of(struct small *m, uint64_t stream)
{
	if (m->recent < m->lane_count && m->lanes[m->recent]->stream == stream)
		return m->lanes[m->recent];
	for (int i = 0; i < m->lane_count; i++)
		if (m->lanes[i]->stream == stream)
			return m->lanes[m->recent = i];
	return NULL;
}

/* meld joins two heaps. */
static uint32_t meld(struct block *b, uint32_t x, uint32_t y)
{
	if (!x || !y)
		return x | y;
	if (b[y].address < b[x].address) {
		uint32_t z = x;
		x = y;
		y = z;
	}
	b[y].back = x;
	b[y].next = b[x].child;
	if (b[x].child)
		b[b[x].child].back = y;
	b[x].child = y;
	return x;
}

/* meld_all joins a list of heaps: in pairs, then those from the last to the first. */
static uint32_t meld_all(struct block *b, uint32_t list)
{
	uint32_t pairs = 0, root = 0;
	while (list) {
		uint32_t x = list, y = b[x].next;
		list = y ? b[y].next : 0;
		b[x].next = b[x].back = 0;
		if (y)
			b[y].next = b[y].back = 0;
		x = meld(b, x, y);
		b[x].next = pairs;
		pairs = x;
	}
	while (pairs) {
		uint32_t x = pairs;
		pairs = b[x].next;
		b[x].next = 0;
		root = meld(b, root, x);
	}
	return root;
}

static void add_free(struct small *m, struct lane *l, uint32_t i)
{
	struct block *b = &m->blocks[i];
	b->state = GM_FREE_BLOCK;
	b->child = b->next = b->back = 0;
	l->root[b->size] = meld(m->blocks, l->root[b->size], i);
	l->filled[b->size / 64] |= UINT64_C(1) << b->size % 64;
}

static void remove_free(struct small *m, struct lane *l, uint32_t i)
{
	struct block *b = m->blocks, *x = &b[i];
	uint32_t *root = &l->root[x->size], below = meld_all(b, x->child);
	if (*root == i) {
		*root = below;
	} else {
		struct block *back = &b[x->back];
		*(back->child == i ? &back->child : &back->next) = x->next;
		if (x->next)
			b[x->next].back = x->back;
		*root = meld(b, *root, below);
	}
	if (!*root)
		l->filled[x->size / 64] &= ~(UINT64_C(1) << x->size % 64);
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
static void split(struct small *m, struct lane *l, uint32_t i, uint32_t size)
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
static void absorb(struct small *m, uint32_t i, uint32_t after)
{
	struct block *b = &m->blocks[i], *n = &m->blocks[after];
	b->size += n->size;
	b->after = n->after;
	if (b->after)
		m->blocks[b->after].before = i;
	put_spare(m, after);
}

static void make_free(struct small *m, uint32_t i)
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

static void count(struct gm_device *d, int64_t bytes)
{
	int64_t now = atomic_load_explicit(&d->small_bytes, memory_order_relaxed) + bytes;
	atomic_store_explicit(&d->small_bytes, now, memory_order_relaxed);
	if (now > atomic_load_explicit(&d->small_most, memory_order_relaxed))
		atomic_store_explicit(&d->small_most, now, memory_order_relaxed);
}

/* get leaves one spare block for whoever holds the device's lock. */
static uint64_t get(struct gm_device *d, struct small *m, size_t bytes, uint64_t stream)
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
	uint64_t address = get(&gm_devices[device], &smalls[device], bytes, stream);
	gm_account_unlock(device);
	return (void *)(uintptr_t)address;
}

/* give frees a block, or leaves it to Go. */
static enum gm_fate give(struct gm_device *d, struct small *m, struct slot *s)
{
	uint32_t i = s->block;
	struct block *b = &m->blocks[i];
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
	struct small *m = &smalls[device];
	enum gm_fate fate = GM_UNKNOWN;
	gm_account_lock(device);
	struct slot *s = find(m, address);
	struct block *b = s ? &m->blocks[s->block] : NULL;
	if (b && b->state != GM_AWAITED_BLOCK) {
		gm_account_leave(d->account, taken_by(b), b->requested);
		fate = give(d, m, s);
	}
	gm_account_unlock(device);
	return fate;
}

void gm_small_return(int device, uint64_t address)
{
	struct small *m = &smalls[device];
	gm_account_lock(device);
	struct slot *s = find(m, address);
	if (s && m->blocks[s->block].state == GM_AWAITED_BLOCK) {
		m->blocks[s->block].state = GM_LIVE_BLOCK;
		give(&gm_devices[device], m, s);
	}
	gm_account_unlock(device);
}

static struct gm_view view_of(const struct block *b)
{
	return (struct gm_view){b->address, b->stream, b->requested, taken_by(b), b->state, b->before == 0};
}

bool gm_small_find(int device, uint64_t address, bool lend, struct gm_view *view)
{
	struct small *m = &smalls[device];
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
	struct small *m = &smalls[device];
	size_t n = m->slots ? mask(m) + 1 : 0, more = n ? 2 * n : SLOTS_MIN;
	struct slot *old = m->slots, *slots = calloc(more, sizeof *slots);
	if (!slots)
		return false;
	gm_account_lock(device);
	m->slots = slots;
	m->shift = 64 - (unsigned)__builtin_ctzll(more);
	m->held = 0;
	for (size_t i = 0; i < n; i++)
		if (old[i].address)
			hold(m, old[i].address, old[i].block);
	gm_account_unlock(device);
	free(old);
	return true;
}

static bool more_blocks(int device)
{
	struct small *m = &smalls[device];
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
static struct lane *add_lane(struct small *m, uint64_t stream)
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
	struct small *m = &smalls[device];
	gm_account_lock(device);
	bool lane = m->on && (lane_of(m, stream) || add_lane(m, stream));
	gm_account_unlock(device);
	return lane && gm_small_holds(device);
}

bool gm_small_holds(int device)
{
	struct small *m = &smalls[device];
	gm_account_lock(device);
	bool on = m->on, spare = m->spares >= 2, slot = has_slot(m);
	gm_account_unlock(device);
	return on && (spare || more_blocks(device)) && (slot || more_slots(device));
}

void gm_small_hold(int device, uint64_t address, size_t bytes, int64_t taken, uint64_t stream, bool special)
{
	struct small *m = &smalls[device];
	gm_account_lock(device);
	uint32_t i = take_spare(m);
	m->blocks[i] = (struct block){
		.address = address, .stream = stream, .requested = (int64_t)bytes, .taken = taken,
		.state = special ? GM_SPECIAL_BLOCK : GM_LARGE_BLOCK};
	hold(m, address, i);
	gm_account_enter(gm_devices[device].account, taken, (int64_t)bytes);
	gm_account_unlock(device);
}

void gm_small_drop(int device, uint64_t address)
{
	struct small *m = &smalls[device];
	gm_account_lock(device);
	struct slot *s = find(m, address);
	struct block *b = s ? &m->blocks[s->block] : NULL;
	if (b && b->state == GM_SPECIAL_BLOCK) {
		gm_account_leave(gm_devices[device].account, taken_by(b), b->requested);
		give(&gm_devices[device], m, s);
	}
	gm_account_unlock(device);
}

bool gm_small_add(int device, uint64_t address, uint64_t stream)
{
	struct small *m = &smalls[device];
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
	struct small *m = &smalls[device];
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
	struct small *m = &smalls[device];
	size_t count = 0;
	gm_account_lock(device);
	for (uint32_t first = 1; first < m->block_count; first++) {
		if (m->blocks[first].state == GM_NO_BLOCK || m->blocks[first].before)
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
	smalls[device].on = true;
	gm_account_unlock(device);
}

void gm_small_end(int device)
{
	struct small *m = &smalls[device];
	gm_account_lock(device);
	m->on = false;
	m->held = 0;
	if (m->slots)
		memset(m->slots, 0, (mask(m) + 1) * sizeof *m->slots);
	gm_account_unlock(device);
}
