/* Faults that a program requests while it runs, each thread for its own calls, in addition to those of GM_FAKE_FAIL. */
#ifndef FAKE_FAULT_H
#define FAKE_FAULT_H

#include <stdbool.h>

#include "cuda_types.h"

/* fake_fault_seed seeds this thread's random numbers. */
__attribute__((visibility("default"))) void fake_fault_seed(uint64_t seed);
/* fake_faults makes calls of this thread fail with an error, at a rate per million; 0 ends that. */
__attribute__((visibility("default"))) void fake_faults(unsigned per_million, CUresult error);
/* fake_fault_names sets the calls that may fail, in all threads, separated by commas; NULL is all. Call it before fake_faults. */
__attribute__((visibility("default"))) void fake_fault_names(const char *names);
/* fake_fault_at makes the call of a name fail, in any thread, that is at this position from now on, the first at 1, and
 * if onwards is set all later ones, too; position 0 ends that. */
__attribute__((visibility("default"))) void fake_fault_at(const char *name, unsigned long position, bool onwards, CUresult error);
/* fake_fault_count returns the number of calls that failed. */
__attribute__((visibility("default"))) unsigned long fake_fault_count(void);

#endif
