// Package snapshot imports the memory snapshots of PyTorch: the pickles that torch.cuda.memory._dump_snapshot and the
// allocator's out-of-memory hook write (torch/csrc/cuda/Module.cpp and memory_snapshot.cpp), of any version.
//
// A snapshot holds the allocator's segments and blocks as they were when it was taken, the history of each device
// up to that moment, marks of the profiler, and the allocator's settings, in this order. A trace begins with the
// state before the history, which follows from the last state and the whole history; and it merges devices and marks
// in the order of time. So no row can be written before the whole input is read. A pipe cannot be read twice: instead
// the first pass packs each event into 6 to 15 bytes, in memory up to 64 MiB and in a temporary file beyond, and the
// second pass reads those.
//
// A process that is recorded while it runs gives a sequence of snapshots whose histories overlap: see Join. In each
// snapshot the end of the one before is found by its entries and their times, which distinguish the turns of a loop.
//
// # Bounds
//
// Besides the decoder's (see package pickle) and the 64 MiB of packed events, an import holds 60 to 200 bytes for each
// distinct block address, mapped range, mark and live block, of which there may be 8 Mi together, up to 192 MiB of
// distinct stacks and other texts, and 64 Ki pools. More texts are left out; an input with more of the others is
// refused. Whatever the input, an import takes less than 3 GiB. The file of packed events takes less than twice the
// size of the input. A join holds this once for all snapshots, and besides the events of the one that is being read.
//
// # Files
//
//	import.go, join.go                             one snapshot, or several of a process, to a trace
//	snapshot.go, keys.go                           the first pass: the parts of a snapshot, by their keys
//	event.go, segment.go, frames.go, settings.go   its events, segments and blocks, stacks, allocator settings
//	history.go, overlap.go                         what is kept of a device, and where two histories meet
//	record.go, spool.go                            packed events between the passes
//	recording.go, initial.go, mapping.go           the state before the history
//	emit.go, emit_event.go, oddities.go            the second pass: rows of the trace, and warnings
package snapshot
