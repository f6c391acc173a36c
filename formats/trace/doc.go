// Package trace reads and writes traces as Parquet: what happened to the memory of a process's GPUs, one row per event.
// formats/README.md documents the format itself, for readers in other languages.
//
// # Rules
//
// Both the Writer and the Reader check a trace against the rules of [Validator]. A batch that was read needs no further
// checks.
//
// # Backwards compatibility
//
// A reader accepts any file of its major version or an older one, and ignores columns that [Batch] does not have.
// Within a major version, columns are only added, never changed or removed.
package trace
