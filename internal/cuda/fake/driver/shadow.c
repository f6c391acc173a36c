/* The last uses of each byte: what wrote it, and what of each stream has read it since. */
#include "races.h"

#include <stdlib.h>
#include <string.h>

#define READERS 6
#define PAGE MIB
#define BUCKETS 4096

/* Bytes of a page of which the last uses are the same. */
struct cell {
	uint32_t begin, end; /* within the page */
	struct use write, reads[READERS];
};

struct page {
	struct page *next;
	uint64_t number;
	struct cell *cells; /* by place */
	size_t count, room;
};

static struct page *pages[BUCKETS];

/* place_of returns where the pointer to a page is, or would be. */
static struct page **place_of(uint64_t number)
{
	struct page **at = &pages[(number ^ number >> 20) % BUCKETS];
	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

static struct page *page_of(uint64_t number)
{
	struct page **at = place_of(number);
	if (!*at) {
		*at = calloc(1, sizeof **at);
		if (!*at)
			abort();
		(*at)->number = number;
	}
	return *at;
}

/* first returns the index of the first cell that ends behind a place. */
static size_t first(const struct page *p, uint32_t at)
{
	size_t low = 0, high = p->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (p->cells[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct cell *insert(struct page *p, size_t i, struct cell c)
{
	if (p->count == p->room) {
		p->room = p->room ? 2 * p->room : 8;
		p->cells = realloc(p->cells, p->room * sizeof *p->cells);
		if (!p->cells)
			abort();
	}
	memmove(&p->cells[i + 1], &p->cells[i], (p->count++ - i) * sizeof *p->cells);
	p->cells[i] = c;
	return &p->cells[i];
}

/* cut makes a cell begin at a place within one. */
static void cut(struct page *p, uint32_t at)
{
	size_t i = first(p, at);
	if (i == p->count || p->cells[i].begin >= at)
		return;
	struct cell left = p->cells[i];
	left.end = at;
	p->cells[i].begin = at;
	insert(p, i, left);
}

/* take removes the cells of a range, which begin and end with it. */
static void take(struct page *p, uint32_t begin, uint32_t end)
{
	size_t i = first(p, begin), n = 0;
	while (i + n < p->count && p->cells[i + n].begin < end)
		n++;
	if (n)
		memmove(&p->cells[i], &p->cells[i + n], (p->count - i - n) * sizeof *p->cells);
	p->count -= n;
}

static bool known(const struct use *u, const struct clock *c) { return u->epoch <= c->at[u->clock]; }

/* check reports what of a cell's uses is not known to be done, the first of them. */
static void check(const struct page *p, const struct cell *c, const struct access *a, raced *report)
{
	uint64_t at = p->number * PAGE + c->begin, size = c->end - c->begin;
	if (!known(&c->write, a->known))
		report(&c->write, true, a, at, size);
	for (int i = 0; a->write && i < READERS; i++)
		if (!known(&c->reads[i], a->known))
			report(&c->reads[i], false, a, at, size);
}

/* note_read keeps the last read of each stream, and where there are too many the reads that are not known to be done. */
static void note_read(struct cell *c, const struct access *a)
{
	int at = -1;
	for (int i = READERS; i-- > 0;)
		if (!c->reads[i].epoch || known(&c->reads[i], a->known))
			at = i;
	for (int i = 0; i < READERS; i++)
		if (c->reads[i].epoch && c->reads[i].clock == a->use.clock)
			at = i;
	if (at >= 0)
		c->reads[at] = a->use;
}

static void read_cells(struct page *p, uint32_t begin, uint32_t end, const struct access *a)
{
	size_t i = first(p, begin);
	for (uint32_t at = begin; at < end; at = p->cells[i++].end) {
		uint32_t next = i < p->count && p->cells[i].begin < end ? p->cells[i].begin : end;
		if (at < next)
			insert(p, i, (struct cell){.begin = at, .end = next});
		note_read(&p->cells[i], a);
	}
}

static void access_page(struct page *p, uint32_t begin, uint32_t end, const struct access *a, raced *report)
{
	cut(p, begin);
	cut(p, end);
	for (size_t i = first(p, begin); i < p->count && p->cells[i].begin < end; i++)
		check(p, &p->cells[i], a, report);
	if (a->ends)
		return;
	if (!a->write) {
		read_cells(p, begin, end, a);
		return;
	}
	take(p, begin, end);
	insert(p, first(p, begin), (struct cell){.begin = begin, .end = end, .write = a->use});
}

void shadow_access(uint64_t address, uint64_t size, const struct access *a, raced *report)
{
	for (uint64_t end = address + size; address < end;) {
		uint64_t number = address / PAGE, last = (number + 1) * PAGE < end ? (number + 1) * PAGE : end;
		access_page(page_of(number), (uint32_t)(address % PAGE), (uint32_t)(last - number * PAGE), a, report);
		address = last;
	}
}

static void forget(struct page **at, uint32_t begin, uint32_t end)
{
	struct page *p = *at;
	cut(p, begin);
	cut(p, end);
	take(p, begin, end);
	if (p->count)
		return;
	*at = p->next;
	free(p->cells);
	free(p);
}

void shadow_forget(uint64_t address, uint64_t size)
{
	for (uint64_t end = address + size; address < end;) {
		uint64_t number = address / PAGE, last = (number + 1) * PAGE < end ? (number + 1) * PAGE : end;
		struct page **at = place_of(number);
		if (*at)
			forget(at, (uint32_t)(address % PAGE), (uint32_t)(last - number * PAGE));
		address = last;
	}
}
