/* A sorted array of entries. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

size_t table_from(const struct table *t, uint64_t key)
{
	size_t low = 0, high = t->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->items[middle]->key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool table_insert(struct table *t, struct entry *e)
{
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 64;
		struct entry **items = realloc(t->items, room * sizeof *items);
		if (!items)
			return false;
		t->items = items;
		t->room = room;
	}
	size_t i = table_from(t, e->key);
	memmove(&t->items[i + 1], &t->items[i], (t->count - i) * sizeof *t->items);
	t->items[i] = e;
	t->count++;
	return true;
}

void table_remove(struct table *t, const struct entry *e)
{
	size_t i = table_from(t, e->key);
	t->count--;
	memmove(&t->items[i], &t->items[i + 1], (t->count - i) * sizeof *t->items);
}

void *table_at(const struct table *t, uint64_t key)
{
	size_t i = table_from(t, key);
	return i < t->count && t->items[i]->key == key ? t->items[i] : NULL;
}

void *table_covering(const struct table *t, uint64_t key)
{
	size_t i = table_from(t, key);
	if (i < t->count && t->items[i]->key == key)
		return t->items[i];
	if (i == 0)
		return NULL;
	struct entry *e = t->items[i - 1];
	return key - e->key < e->size ? e : NULL;
}
