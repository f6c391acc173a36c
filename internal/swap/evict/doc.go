// Package evict runs the operators of a step in program order on a device that is too small: where memory is short it evicts tensors, and it
// recomputes them when they are needed again. Which ones go, and where in memory tensors are, is up to a [Memory]. What comes out is a
// schedule of Free and Recompute.
//
//	run.go       a step that runs, and its actions
//	until.go     until when a tensor can be recomputed
//	cost.go      what is evicted around a tensor, and what it takes to recompute that
//	pool.go      addresses: blocks, free ones and tensors
package evict
