/* Large requests of the default pool that repeat an earlier one, served without Go. A large block that is freed stays here, warm, for the
 * next request of its size in its stream; of several, the one whose place came first is taken, as in internal/blocks/stitch_heap.go. Go
 * takes all of them at its next request, which needs another block than these: then it joins what is free anyway. */
#include "held.h"

static int64_t rounded(size_t bytes) { return (int64_t)((bytes + GM_UNIT - 1) / GM_UNIT * GM_UNIT); }

static size_t home_of(const struct held *m, uint64_t stream, int64_t taken)
{
	return home(m, (uint64_t)taken + stream * HASH);
}

/* seek returns the slot of the warm blocks of a stream and a size, or the empty one in which they would be. */
static size_t seek(const struct held *m, uint64_t stream, int64_t taken)
{
	size_t i = home_of(m, stream, taken);
	for (;; i = (i + 1) & mask(m)) {
		const struct block *b = &m->blocks[m->slots[i].root];
		if (!m->slots[i].root || (b->taken == taken && b->stream == stream))
			return i;
	}
}

/* vacate empties a slot, into which a later one may move. */
static void vacate(struct held *m, size_t hole)
{
	size_t last = mask(m);
	for (size_t i = (hole + 1) & last; m->slots[i].root; i = (i + 1) & last) {
		const struct block *b = &m->blocks[m->slots[i].root];
		size_t h = home_of(m, b->stream, b->taken);
		if (((i - h) & last) >= ((i - hole) & last)) {
			m->slots[hole].root = m->slots[i].root;
			hole = i;
		}
	}
	m->slots[hole].root = 0;
}

void gm_warm_place(struct held *m, uint32_t root)
{
	m->slots[seek(m, m->blocks[root].stream, m->blocks[root].taken)].root = root;
}

void gm_warm_put(int device, uint32_t i)
{
	struct gm_device *d = &gm_devices[device];
	struct held *m = &gm_held[device];
	struct block *b = &m->blocks[i];
	size_t slot = seek(m, b->stream, b->taken);
	b->state = GM_WARM_BLOCK;
	b->before = m->warm_last;
	b->after = 0;
	*(b->before ? &m->blocks[b->before].after : &m->warm_first) = i;
	m->warm_last = i;
	heap_add(m->blocks, &m->slots[slot].root, i);
	count(d, -b->taken);
	atomic_fetch_add_explicit(&d->warm, 1, memory_order_relaxed);
}

/* take_out makes a block, the one of a slot or below that, warm no more. */
static void take_out(struct gm_device *d, struct held *m, size_t slot, uint32_t i)
{
	struct block *b = &m->blocks[i];
	uint32_t root = m->slots[slot].root;
	heap_remove(m->blocks, &root, i);
	if (root)
		m->slots[slot].root = root;
	else
		vacate(m, slot);
	*(b->before ? &m->blocks[b->before].after : &m->warm_first) = b->after;
	*(b->after ? &m->blocks[b->after].before : &m->warm_last) = b->before;
	b->before = b->after = 0;
	atomic_fetch_sub_explicit(&d->warm, 1, memory_order_relaxed);
}

void *gm_warm_get(int device, size_t bytes, uint64_t stream)
{
	struct gm_device *d = &gm_devices[device];
	struct held *m = &gm_held[device];
	uint64_t address = 0;
	if (!atomic_load_explicit(&d->keeps, memory_order_relaxed))
		return NULL;
	gm_account_lock(device);
	if (m->warm_first) {
		size_t slot = seek(m, stream, rounded(bytes));
		uint32_t i = m->slots[slot].root;
		if (i) {
			struct block *b = &m->blocks[i];
			take_out(d, m, slot, i);
			b->state = GM_LARGE_BLOCK;
			b->requested = (int64_t)bytes;
			address = b->address;
			count(d, b->taken);
			gm_account_enter(d, b->taken, b->requested);
		}
	}
	gm_account_unlock(device);
	return (void *)(uintptr_t)address;
}

size_t gm_warm_take(int device, uint64_t *to, size_t n)
{
	struct gm_device *d = &gm_devices[device];
	struct held *m = &gm_held[device];
	size_t taken = 0;
	gm_account_lock(device);
	for (uint32_t i; taken < n && (i = m->warm_first); taken++) {
		struct block *b = &m->blocks[i];
		to[taken] = b->address;
		atomic_fetch_add_explicit(&d->given_most, b->taken, memory_order_relaxed);
		atomic_fetch_add_explicit(&d->given, b->taken, memory_order_relaxed);
		take_out(d, m, seek(m, b->stream, b->taken), i);
		let_go(m, find(m, b->address));
		put_spare(m, i);
	}
	gm_account_unlock(device);
	return taken;
}
