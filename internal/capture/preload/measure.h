/* Device memory that a call made a context take for itself, such as for code and stacks of threads. */
#ifndef GM_MEASURE_H
#define GM_MEASURE_H

#include "tell.h"

/* gm_measure is the state before a call. */
struct gm_measure {
	int known;
	size_t free;
	uint64_t told;
};

struct gm_measure gm_before(void);

/* gm_after records by how much the context has grown, unless other calls were recorded meanwhile, and returns result. */
int gm_after(struct gm_measure m, int result, enum gm_growth what, void *caller);

#endif
