/* Physical memory, as cuMemCreate makes it. */
#ifndef PHYSICAL_H
#define PHYSICAL_H

#include "driver.h"

struct memory {
	CUmemAllocationProp prop;
	uint64_t size;
	int fd;          /* the memory is the file's bytes [offset, offset+size) */
	uint64_t offset;
	bool own_file;   /* the file holds nothing else */
	bool imported;   /* counted in another process */
	uint64_t inode;
	uint64_t shadow; /* where races.c has it, whatever its addresses */
	unsigned handles; /* number of handles: each import adds one */
};

struct handle {
	struct entry entry; /* the key is the value that the program has */
	struct memory *memory;
	unsigned references, mappings; /* without either the handle is gone, and with its last handle the memory */
};

struct handle *handle_of(CUmemGenericAllocationHandle value); /* with at least one reference */
void handle_unmapped(struct handle *h);

#endif
