// Package trace reads and writes traces: what happened to the memory of a process's GPUs, one row an event, as
// Parquet. Package documentation of the format itself, for those who read it elsewhere, is in formats/README.md.
//
// # Rules
//
// Both the Writer and the Reader hold a trace to the rules of [Validator], so that whoever has read a batch need not
// look at it again.
//
// # Backwards compatibility
//
// A reader takes any file of its major version or an older one, whatever columns it has beside those of [Batch].
// Within a major version columns are added and never changed or taken away.
package trace
