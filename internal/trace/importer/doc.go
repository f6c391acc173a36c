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
// A header with the columns id, lower, upper or end, and size, and optionally alignment and offset. The greatest alignment is taken for
// all buffers. A trace has no gaps, same_as, next_to and arena: a warning counts them.
//
// # Plain CSV
//
// A header with the columns time_ns, op, id and size in any order, and optionally addr, device, stream, pool, thread,
// level, stack and tag, and derived, certainty and rule of a tag that gm derived. The ops are those of a trace (alloc, free,
// free_requested, free_completed, segment_alloc, ..., mark). The id is any text that names an allocation from its alloc to its
// free; rows of other ops leave it empty or 0. Numbers are decimal, or hexadecimal after 0x. Times must not decrease. A field
// with a comma is enclosed in double quotes, and its own double quotes are doubled; it cannot contain a line break.
package importer
