// Package snapshot imports the memory snapshots of PyTorch: the pickles that torch.cuda.memory._dump_snapshot and the
// allocator's out-of-memory hook write (torch/csrc/cuda/Module.cpp and memory_snapshot.cpp), of any version.
//
// A snapshot holds the allocator's segments and blocks as they were when it was taken, the history of each device
// up to that moment, marks of the profiler, and the allocator's settings, in this order. A trace begins with the
// state before the history, which follows from the last state and the whole of the history; and it merges devices
// and marks in the order of time. So no row can be written before all of the input is read. Reading it twice would
// ask for a file, and pipes are none: instead the first pass packs each event into 6 to 15 bytes, kept in memory up
// to 64 MiB and in a temporary file beyond, and the second pass reads those.
//
// A process that is recorded as it runs gives a sequence of snapshots, whose histories overlap: see Join. The end of
// the one before is found in each by the entries there, and by their times, which tell one turn of a loop from another.
//
// # Bounds
//
// Besides the decoder's (see package pickle) and the 64 MiB of packed events, an import holds 60 to 200 bytes for each
// distinct block address, mapped range, mark and live block, of which there may be 8 Mi together, up to 192 MiB of
// distinct stacks and other texts, and 64 Ki pools. Where an input has more texts they are left out, where it has more
// of the others it is refused. Whatever the input, an import takes less than 3 GiB. The file of packed events takes less than
// twice the size of the input. A join holds that once for all that is joined, and besides the events of the snapshot
// that is being read.
package snapshot
