/* gate.h: what libgmgate.so offers to libgm.so. It is preloaded into programs, and stands between them and the CUDA driver: while the
 * gate is closed, a call that uses memory of a device waits. While it is open, that costs a call two stores and a load of its thread's
 * own. */
#ifndef GM_GATE_H
#define GM_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gm_gate_close closes the gate, and waits until no thread is within a gated call. It returns NULL, or why the gate is open again: after
 * timeout_ms, or while a CUDA graph is captured. */
const char *gm_gate_close(int timeout_ms);
void gm_gate_open(void);
/* gm_gate_exempt lets the calls of this thread pass a closed gate from now on, or no longer. It does not nest. */
void gm_gate_exempt(bool exempt);
/* gm_gate_pass waits until the gate is open, as a gated call does. */
void gm_gate_pass(void);
/* gm_gate_await waits until a thread has found the gate closed, and returns how many have so far, modulo 2^32; seen is what it returned
 * last, 0 at first. */
uint32_t gm_gate_await(uint32_t seen);
/* gm_gate_on_full has a function called where a device has no room for bytes and what CUDA takes by itself. It makes room, and says
 * whether to try again. */
void gm_gate_on_full(bool (*make_room)(int device, size_t bytes));
/* gm_gate_calls counts gated calls, twice each; it changes while the program works. */
uint64_t gm_gate_calls(void);
/* gm_gate_passed_on copies addresses of memory of a device that the program has passed on to other processes, network cards or multicast
 * groups, at most room. It returns their number; it may be more, and says then that some are not known. */
size_t gm_gate_passed_on(uint64_t *addresses, size_t room);

#endif
