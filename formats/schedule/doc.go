// Package schedule reads and writes schedules: what is done with the tensors of a graph during a step, one row an action, as Parquet.
// Documentation of the format itself, for those who read it elsewhere, is in formats/README.md.
//
// # Rules
//
// Both the Writer and the Reader hold a schedule to the rules of [Validator], which keeps up to 64 bytes for each tensor that is
// copied to the host. That a schedule can be carried out, and that no two tensors share a byte of host memory at the same time, is not
// among them: that takes the graph.
//
// # Backwards compatibility
//
// A reader takes any file of its major version or an older one, whatever columns it has beside those of [Batch].
// Within a major version columns are added and never changed or taken away.
package schedule
