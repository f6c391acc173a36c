// Package graph reads and writes graphs as Parquet: a step of training as operators and the tensors that may be moved during it.
// formats/README.md documents the format itself, for readers in other languages.
//
// A graph is one table with rows of four kinds, see [Kind]. The rows of an operator are consecutive, with the row of the operator itself
// first. Operators follow each other in the order in which the compute stream runs them.
//
// # Rules
//
// Both the Writer and the Reader check a graph against the rules of [Validator], which keeps 24 bytes for each tensor.
//
// # Backwards compatibility
//
// A reader accepts any file of its major version or an older one, and ignores columns that [Batch] does not have.
// Within a major version, columns are only added, never changed or removed.
package graph
