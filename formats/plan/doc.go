// Package plan reads and writes plans as Parquet: where each tensor of a trace is to be placed, one row per tensor. The
// allocs and frees that a plan was made for can be rebuilt from it. formats/README.md documents the format itself, for
// readers in other languages.
//
// # Rules
//
// Both the Writer and the Reader check a plan against the rules of [Validator]. These do not include that no two tensors
// share a byte at the same time.
//
// # Backwards compatibility
//
// A reader accepts any file of its major version or an older one, and ignores columns that [Batch] does not have.
// Within a major version, columns are only added, never changed or removed.
package plan
