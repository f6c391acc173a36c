// Package plan reads and writes plans: where each tensor of a trace is to be put, one row a tensor, as Parquet. A plan
// is enough to rebuild the allocs and frees it was made for. Documentation of the format itself, for those who read
// it elsewhere, is in formats/README.md.
//
// # Rules
//
// Both the Writer and the Reader hold a plan to the rules of [Validator]. That no two tensors share a byte at the same
// time is not among them.
//
// # Backwards compatibility
//
// A reader takes any file of its major version or an older one, whatever columns it has beside those of [Batch].
// Within a major version columns are added and never changed or taken away.
package plan
