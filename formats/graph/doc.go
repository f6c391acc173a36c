// Package graph reads and writes graphs: a step of training as operators and the tensors that may be moved during it, as Parquet.
// Documentation of the format itself, for those who read it elsewhere, is in formats/README.md.
//
// A graph is one table with rows of four kinds, see [Kind]. The rows of an operator stand together, that of the operator itself first, and
// operators follow each other in the order in which the compute stream runs them.
//
// # Rules
//
// Both the Writer and the Reader hold a graph to the rules of [Validator], which keeps 8 bytes for each tensor.
//
// # Backwards compatibility
//
// A reader takes any file of its major version or an older one, whatever columns it has beside those of [Batch].
// Within a major version columns are added and never changed or taken away.
package graph
