/* Which uses of memory by streams and the host are in order, and which are not: GM_FAKE_RACES names the file that gets a line for each pair
 * that is not. All of it is called with the driver's lock held, and does nothing where the variable is unset. */
#ifndef RACES_H
#define RACES_H

#include "driver.h"

#define CLOCKS 256 /* the host, and streams that are told apart */

/* What is known to be done: of each stream the first so many operations, of the host so many steps. */
struct clock { uint64_t at[CLOCKS]; };

extern bool races_on; /* set before the driver is used */

void races_open(CUstream s);                                    /* a stream begins, which follows the host, and where there were CLOCKS an old one */
void races_close(CUstream s);
void races_op(CUstream s, const struct op *op);                 /* an operation is queued */
void races_wait(CUstream s, const struct record *record);       /* what the stream gets from now on waits for a recording */
void races_know(const struct record *record);                   /* the host knows that a recording is done */
bool races_refuse(struct record *record);                       /* whether the host is not told yet that a recording is done */
bool races_refuse_stream(CUstream s);                           /* the same of a stream */
void races_sync(CUstream s);                                    /* the host knows that a stream is done, */
void races_sync_context(CUcontext ctx);                         /* all of a context, */
void races_sync_device(int device);                             /* or of a device */
void races_host(uint64_t address, uint64_t size, bool write, const char *what); /* the host uses memory */
void races_end(uint64_t address, uint64_t size, const char *what); /* the memory must be out of use */
void races_forget(uint64_t address, uint64_t size);             /* what comes there is other memory */

/* shadow.c: the last uses of each byte. */
struct use { uint64_t epoch; uint32_t clock, site; };           /* epoch 0: none */
struct access {
	struct use use;
	const struct clock *known; /* by who makes it */
	bool write, ends;          /* ends: nothing is noted */
};
typedef void raced(const struct use *before, bool wrote, const struct access *now, uint64_t address, uint64_t size);
void shadow_access(uint64_t address, uint64_t size, const struct access *a, raced *report);
void shadow_forget(uint64_t address, uint64_t size);

/* sites.c: who made a use, and where, as numbers. */
uint32_t site_of(const char *function, const char *mark);
const char *site_name(uint32_t site);

/* address.c: the part of a range that is one piece, from its start on, and where its memory is, whatever its address. */
uint64_t memory_at(uint64_t address, uint64_t size, uint64_t *part);

#endif
