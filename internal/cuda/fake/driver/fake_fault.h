/* Faults that a program asks for while it runs, each thread for its own calls, beside those of GM_FAKE_FAIL. */
#ifndef FAKE_FAULT_H
#define FAKE_FAULT_H

#include "cuda_types.h"

/* fake_fault_seed begins the draws of this thread. */
__attribute__((visibility("default"))) void fake_fault_seed(uint64_t seed);
/* fake_faults has calls of this thread fail with an error, so many of a million; 0 ends that. */
__attribute__((visibility("default"))) void fake_faults(unsigned per_million, CUresult error);
/* fake_fault_names says which calls of all threads may fail, separated by commas, before any does; NULL stands for all. */
__attribute__((visibility("default"))) void fake_fault_names(const char *names);
/* fake_fault_count returns how many calls have failed. */
__attribute__((visibility("default"))) unsigned long fake_fault_count(void);

#endif
