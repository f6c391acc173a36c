/* The blocks that C holds of a device, by number and by address, and pairing heaps of free ones. All of it is guarded by the lock of the
 * account. held.c finds them by address, small.c serves small requests from them, warm.c large ones. */
#ifndef HELD_H
#define HELD_H

#include "libgm.h"

enum { LANES = 64, SLOTS_MIN = 1 << 12, BLOCKS_MIN = 1 << 11, WORDS = GM_SEGMENT_UNITS / 64 + 1 };

#pragma GCC visibility push(hidden)

/* A block, by its number; 0 is none. */
struct block {
	uint64_t address, stream;
	int64_t requested; /* bytes */
	int64_t taken; /* bytes, of one that Go serves */
	uint32_t size; /* in units, of one in a segment */
	enum gm_block_state state;
	uint32_t before, after; /* the neighbours in a segment, or those that became warm before and after */
	uint32_t child, next, back; /* in a heap: the first child, the next child of the same one, who points here */
	int32_t rank; /* of one that Go serves: its place among those of its size, -1 if it never becomes warm */
};

/* The free blocks of a stream: for each size a heap. */
struct lane {
	uint64_t stream;
	uint32_t segments;
	uint64_t filled[WORDS]; /* a bit for each size that has blocks */
	uint32_t root[GM_SEGMENT_UNITS + 1];
};

/* A slot of two hash tables with linear probing, each at most half full: the blocks that are live or warm, by address; and the heaps of
 * warm blocks, by stream and size. */
struct slot {
	uint64_t address; /* 0: none */
	uint32_t block;
	uint32_t root; /* of a heap, 0: none */
};

struct held {
	bool on;
	int lane_count, recent;
	struct lane *lanes[LANES];
	struct block *blocks;
	uint32_t block_count, spare, spares; /* spare is a list through next */
	struct slot *slots;
	unsigned shift; /* 64 - log2 of the number of slots */
	size_t held;
	uint32_t warm_first, warm_last; /* in the order in which they became warm */
};

extern struct held gm_held[GM_DEVICES];

/* small.c */
void gm_small_free(struct held *m, uint32_t block); /* makes a block of a segment free, and joins it with its neighbours */

/* warm.c */
void gm_warm_put(int device, uint32_t block); /* makes a live block warm */
void gm_warm_place(struct held *m, uint32_t root); /* enters a heap into a table without it */

#pragma GCC visibility pop

#define HASH UINT64_C(0x9e3779b97f4a7c15)

static inline size_t mask(const struct held *m) { return ((size_t)1 << (64 - m->shift)) - 1; }

static inline size_t home(const struct held *m, uint64_t address) { return address * HASH >> m->shift; }

static inline struct slot *find(const struct held *m, uint64_t address)
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

static inline void hold(struct held *m, uint64_t address, uint32_t block)
{
	size_t i = home(m, address);
	while (m->slots[i].address)
		i = (i + 1) & mask(m);
	m->slots[i].address = address;
	m->slots[i].block = block;
	m->held++;
}

/* let_go takes a block out of the table, where a later one may move to its slot. */
static inline void let_go(struct held *m, struct slot *s)
{
	size_t hole = (size_t)(s - m->slots), last = mask(m);
	for (size_t i = (hole + 1) & last; m->slots[i].address; i = (i + 1) & last) {
		size_t h = home(m, m->slots[i].address);
		if (((i - h) & last) >= ((i - hole) & last)) {
			m->slots[hole].address = m->slots[i].address;
			m->slots[hole].block = m->slots[i].block;
			hole = i;
		}
	}
	m->slots[hole].address = 0;
	m->held--;
}

static inline bool has_slot(const struct held *m) { return m->slots && 2 * (m->held + 1) <= mask(m) + 1; }

static inline uint32_t take_spare(struct held *m)
{
	uint32_t i = m->spare;
	m->spare = m->blocks[i].next;
	m->spares--;
	return i;
}

static inline void put_spare(struct held *m, uint32_t i)
{
	m->blocks[i] = (struct block){.state = GM_NO_BLOCK, .next = m->spare};
	m->spare = i;
	m->spares++;
}

static inline int64_t taken_by(const struct block *b) { return b->size ? b->size * GM_UNIT : b->taken; }

/* precedes is the order of a heap: by rank, which those in segments do not have, then by address. */
static inline bool precedes(const struct block *x, const struct block *y)
{
	return x->rank < y->rank || (x->rank == y->rank && x->address < y->address);
}

/* meld joins two heaps. */
static inline uint32_t meld(struct block *b, uint32_t x, uint32_t y)
{
	if (!x || !y)
		return x | y;
	if (precedes(&b[y], &b[x])) {
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
static inline uint32_t meld_all(struct block *b, uint32_t list)
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

static inline void heap_add(struct block *b, uint32_t *root, uint32_t i)
{
	b[i].child = b[i].next = b[i].back = 0;
	*root = meld(b, *root, i);
}

static inline void heap_remove(struct block *b, uint32_t *root, uint32_t i)
{
	struct block *x = &b[i];
	uint32_t below = meld_all(b, x->child);
	if (*root == i) {
		*root = below;
		return;
	}
	struct block *back = &b[x->back];
	*(back->child == i ? &back->child : &back->next) = x->next;
	if (x->next)
		b[x->next].back = x->back;
	*root = meld(b, *root, below);
}

/* count adds to what C has handed out. */
static inline void count(struct gm_device *d, int64_t bytes)
{
	int64_t now = atomic_load_explicit(&d->given, memory_order_relaxed) + bytes;
	atomic_store_explicit(&d->given, now, memory_order_relaxed);
	if (now > atomic_load_explicit(&d->given_most, memory_order_relaxed))
		atomic_store_explicit(&d->given_most, now, memory_order_relaxed);
}

#endif
