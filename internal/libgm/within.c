/* Which functions have called: a thread's stack is compared with the functions of some name that libraries export. dladdr would look through all
 * symbols of a library for each caller, of which PyTorch's have hundreds of thousands. */
#define _GNU_SOURCE
#include "libgm.h"

#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <string.h>

enum { CALLERS = 256, FUNCTIONS = 256, SEARCHES = 4 }; /* that are looked at, and that are remembered */

struct search {
	char text[256];
	size_t count;
	struct { uintptr_t from, to; } functions[FUNCTIONS];
};

static struct search searches[SEARCHES];
static size_t next; /* the search that is forgotten next */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* symbols returns how many symbols a library has, by its table of hashes: its chains end with the last one. */
static uint32_t symbols(const uint32_t *hashes)
{
	uint32_t buckets = hashes[0], first = hashes[1], words = hashes[2] * (uint32_t)(sizeof(ElfW(Addr)) / sizeof *hashes), last = 0;
	const uint32_t *bucket = hashes + 4 + words, *chain = bucket + buckets;
	for (uint32_t i = 0; i < buckets; i++)
		last = bucket[i] > last ? bucket[i] : last;
	if (last < first)
		return 0;
	while (!(chain[last - first] & 1))
		last++;
	return last + 1;
}

/* contains says whether a name contains one of the texts that | separates. */
static bool contains(const char *name, const char *texts)
{
	for (size_t n; *texts; texts += n + (texts[n] == '|')) {
		n = strcspn(texts, "|");
		if (n && memmem(name, strlen(name), texts, n))
			return true;
	}
	return false;
}

static void look_through(struct search *search, uintptr_t base, const ElfW(Sym) *table, const char *names, uint32_t count)
{
	for (uint32_t i = 0; i < count && search->count < FUNCTIONS; i++) {
		const ElfW(Sym) *s = &table[i];
		if (s->st_shndx == SHN_UNDEF || !s->st_size || !contains(names + s->st_name, search->text))
			continue;
		search->functions[search->count].from = base + s->st_value;
		search->functions[search->count++].to = base + s->st_value + s->st_size;
	}
}

static int look_into(struct dl_phdr_info *library, size_t size, void *data)
{
	(void)size;
	const ElfW(Dyn) *d = NULL;
	for (int i = 0; i < library->dlpi_phnum; i++)
		if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
	const ElfW(Sym) *table = NULL;
	const char *names = NULL;
	const uint32_t *hashes = NULL;
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_un.d_ptr < library->dlpi_addr) /* the kernel's own has offsets there */
			continue;
		if (d->d_tag == DT_SYMTAB)
			table = (const ElfW(Sym) *)d->d_un.d_ptr;
		else if (d->d_tag == DT_STRTAB)
			names = (const char *)d->d_un.d_ptr;
		else if (d->d_tag == DT_GNU_HASH)
			hashes = (const uint32_t *)d->d_un.d_ptr;
	}
	if (table && names && hashes)
		look_through(data, library->dlpi_addr, table, names, symbols(hashes));
	return 0;
}

/* known says whether a caller is one of the functions that are searched for. */
static bool known(const struct search *search, const void *caller)
{
	for (size_t i = 0; i < search->count; i++)
		if ((uintptr_t)caller > search->functions[i].from && (uintptr_t)caller <= search->functions[i].to)
			return true;
	return false;
}

/* search_for returns the functions whose names contain one of the texts: those of a search before, if there was one. */
static const struct search *search_for(const char *texts)
{
	for (size_t i = 0; i < SEARCHES; i++)
		if (searches[i].text[0] && strncmp(searches[i].text, texts, sizeof searches[i].text - 1) == 0)
			return &searches[i];
	struct search *search = &searches[next];
	next = (next + 1) % SEARCHES;
	memset(search, 0, sizeof *search);
	strncpy(search->text, texts, sizeof search->text - 1);
	dl_iterate_phdr(look_into, search);
	return search;
}

int gm_within(const char *texts)
{
	void *callers[CALLERS];
	int n = backtrace(callers, CALLERS), found = 0;
	pthread_mutex_lock(&lock);
	const struct search *search = search_for(texts);
	for (int i = 0; i < n && !found; i++)
		found = known(search, callers[i]);
	pthread_mutex_unlock(&lock);
	return found;
}
