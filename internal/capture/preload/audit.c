/* The same hooks for programs that preloading does not reach, such as those that load CUDA with RTLD_DEEPBIND. When this library is loaded
 * as an auditor (LD_AUDIT, see rtld-audit(7)), the loader asks it about each symbol that any object binds or looks up with dlsym. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <string.h>

#include "driver.h"

int gm_auditing;

/* The driver while it is loaded, and the cookie by which la_objclose recognises it. */
static _Atomic(struct link_map *) driver_map;
static _Atomic(uintptr_t *) driver_cookie;

GM_PUBLIC unsigned la_version(unsigned version)
{
	gm_auditing = 1;
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* driver_came notes the driver's address. A program may unload the driver and load it again elsewhere. */
static void driver_came(struct link_map *map, uintptr_t *cookie)
{
	gm_forget();
	atomic_store(&driver_map, map);
	atomic_store(&driver_cookie, cookie);
}

GM_PUBLIC unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
	const char *slash = strrchr(map->l_name, '/');
	if (namespace == LM_ID_BASE && strcmp(slash ? slash + 1 : map->l_name, "libcuda.so.1") == 0)
		driver_came(map, cookie);
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

/* At the end of a process the loader calls this for every object, while functions of the driver may still be called: those already found
 * stay known. */
GM_PUBLIC unsigned la_objclose(uintptr_t *cookie)
{
	if (cookie == atomic_load(&driver_cookie))
		atomic_store(&driver_map, NULL);
	return 0;
}

GM_PUBLIC uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags, const char *name)
{
	(void)index, (void)from, (void)to, (void)flags;
	void *wrapper = NULL;
	int hook = gm_hook_named(name);
	if (hook >= 0 && atomic_load(&driver_map) && gm_real(hook) == (void *)symbol->st_value)
		wrapper = gm_wrapper(hook);
	else if (strncmp(name, "cuda", 4) == 0)
		wrapper = gm_runtime_wrapper(name, (void *)symbol->st_value);
	return wrapper ? (uintptr_t)wrapper : symbol->st_value;
}

/* gnu_hash is the hash of the section DT_GNU_HASH. */
static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;
	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* lookup finds a symbol in a library's GNU hash table: buckets of chains of symbols. An odd hash marks the last symbol of a chain. */
static void *lookup(const struct link_map *map, const char *name)
{
	const uint32_t *table = NULL;
	const Elf64_Sym *symbols = NULL;
	const char *names = NULL;
	for (const Elf64_Dyn *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_GNU_HASH)
			table = (const uint32_t *)d->d_un.d_ptr;
		else if (d->d_tag == DT_SYMTAB)
			symbols = (const Elf64_Sym *)d->d_un.d_ptr;
		else if (d->d_tag == DT_STRTAB)
			names = (const char *)d->d_un.d_ptr;
	}
	if (!table || !symbols || !names)
		return NULL;
	uint32_t buckets = table[0], first = table[1], filters = table[2];
	const uint32_t *bucket = table + 4 + 2 * filters;
	const uint32_t *chain = bucket + buckets;
	uint32_t hash = gnu_hash(name), i = bucket[hash % buckets];
	if (i < first)
		return NULL;
	for (;; i++) {
		uint32_t other = chain[i - first];
		if ((other | 1) == (hash | 1) && symbols[i].st_shndx != SHN_UNDEF && strcmp(names + symbols[i].st_name, name) == 0)
			return (void *)(map->l_addr + symbols[i].st_value);
		if (other & 1)
			return NULL;
	}
}

void *gm_audited_driver(const char *name)
{
	struct link_map *map = atomic_load(&driver_map);
	return map ? lookup(map, name) : NULL;
}
