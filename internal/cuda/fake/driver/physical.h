/* Physical memory, as cuMemCreate makes it. */
#ifndef PHYSICAL_H
#define PHYSICAL_H

#include "driver.h"

struct physical {
	struct entry handle; /* the key is the handle's value */
	CUmemAllocationProp prop;
	uint64_t size;
	int fd;          /* the memory is the file's bytes [offset, offset+size) */
	uint64_t offset;
	bool own_file;   /* nothing else lies in the file */
	bool imported;   /* another process pays for it */
	uint64_t inode;
	unsigned handles, mappings; /* references; at none of either the memory is freed */
};

struct physical *physical_of(CUmemGenericAllocationHandle handle); /* with at least one reference by handle */
void physical_unmapped(struct physical *m);

#endif
