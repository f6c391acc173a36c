// Package importer turns recordings of other tools into traces: PyTorch's memory snapshots and profiles, logs of RMM, traces of
// STAlloc, the CSV of minimalloc, and a plain CSV for everything else. It detects the format from the content. Input
// that is compressed by gzip is decompressed.
//
// # RMM logs
//
// The CSV of rmm::mr::logging_resource_adaptor: Thread,Time,Action,Pointer,Size,Stream, with or without its header.
// Time is the time of day with microseconds; a step back of more than half a day is taken as midnight. The actions
// are allocate, free and "allocate failure", which becomes an oom row.
//
// # STAlloc traces
//
// One line per event, "1 ptr size stream" for an allocation and "0 ptr size stream" for a free (Allocator/trace.cpp
// of infinigence/STAlloc). All other lines name iterations, micro-batches and layers; they become marks. There are no
// times: rows are a nanosecond apart.
//
// # minimalloc
//
// A header with the columns id (or buffer, buffer_id), lower (or begin, start), upper (exclusive) or end (inclusive)
// and size, in any order, and optionally alignment, offset, hint and gaps (src/converter.cc of google/minimalloc). A
// unit of time becomes a nanosecond, the id a tag, the offset an address. Hints are ignored, and gaps count as occupied.
// If one buffer ends when another begins, it is freed before the other is allocated.
//
// # Profiles
//
// The JSON that torch.profiler exports (Kineto's, in Chrome's Trace Event Format) of a run with profile_memory=True. Its instants
// [memory] have Device Type (0 the host, 1 a GPU), Device Id, Addr, Bytes, which are negative in a free, and Total Allocated;
// [OutOfMemory] becomes an oom row (output_json.cpp of pytorch/kineto, torch/csrc/autograd/profiler_kineto.cpp). Times are microseconds after
// baseTimeNanoseconds. Bytes are those of blocks, which PyTorch rounds up; segments, streams and pools are not in a profile. What was
// allocated before it began shows in frees and in the first total: it becomes rows tagged preexisting. Operators and Python functions that
// run at the time of an event on its thread are its stack. Annotations become two marks, as in PyTorch's histories: NAME START and NAME END.
// A profile without memory of a GPU gives that of the host. The arrows named fwdbwd lead from operators to those of the backward pass: what
// allocates there has the frames of the former around its own.
//
// # Plain CSV
//
// A header with the columns time_ns, op, id and size in any order, and optionally addr, device, stream, pool, thread,
// level, stack and tag. The ops are those of a trace (alloc, free, free_requested, free_completed, segment_alloc, ...,
// mark). The id is any text that names an allocation from its alloc to its free; rows of other ops leave it empty or 0.
// Numbers are decimal, or hexadecimal after 0x. Times must not decrease. A field with a comma is enclosed in double
// quotes, and its own double quotes are doubled; it cannot contain a line break.
package importer
