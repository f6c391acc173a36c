// Package importer turns recordings of other tools into traces: PyTorch's memory snapshots, logs of RMM, traces of
// STAlloc, the CSV of minimalloc, and a plain CSV for those who bring their own. Which of them an input is it tells
// from its content; whatever is compressed by gzip is unpacked.
//
// # RMM logs
//
// The CSV of rmm::mr::logging_resource_adaptor: Thread,Time,Action,Pointer,Size,Stream, with or without its header.
// Time is the time of day with microseconds; a step back of more than half a day is taken for midnight. The actions
// are allocate, free and "allocate failure", which becomes an oom row.
//
// # STAlloc traces
//
// A line for each event, "1 ptr size stream" for an allocation and "0 ptr size stream" for a free (Allocator/trace.cpp
// of infinigence/STAlloc). All other lines name iterations, micro-batches and layers; they become marks. There is no
// time: rows lie a nanosecond apart.
//
// # minimalloc
//
// A header with the columns id (or buffer, buffer_id), lower (or begin, start), upper (exclusive) or end (inclusive)
// and size, in any order, and maybe alignment, offset, hint and gaps (src/converter.cc of google/minimalloc). A unit
// of time becomes a nanosecond, the id a tag, the offset an address; hints are not used, and gaps are taken to be
// occupied. Where lives touch, the one frees before the other allocates.
//
// # Plain CSV
//
// A header with the columns time_ns, op, id and size in any order, and maybe addr, device, stream, pool, thread,
// level, stack and tag. The ops are those of a trace (alloc, free, free_requested, free_completed, segment_alloc, ...,
// mark). The id is any text that names an allocation from its alloc to its free; rows of other ops leave it empty or 0.
// Numbers are decimal, or hexadecimal after 0x. Times must not run backwards. A field with a comma stands in double
// quotes, with its own double quotes doubled; it cannot hold a line break.
package importer
