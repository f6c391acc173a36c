// Package schedule reads and writes schedules as Parquet: what is done with the tensors of a graph during a step, one row per action.
// formats/README.md documents the format itself, for readers in other languages.
//
// # Rules
//
// Both the Writer and the Reader check a schedule against the rules of [Validator], which keeps up to 64 bytes for each tensor that is
// copied to the host. The rules do not include that a schedule can be carried out, nor that no two tensors share a byte of host memory
// at the same time: checking that takes the graph.
//
// # Backwards compatibility
//
// A reader accepts any file of its major version or an older one, and ignores columns that [Batch] does not have.
// Within a major version, columns are only added, never changed or removed.
package schedule
