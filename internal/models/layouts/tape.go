// Package layouts makes layout problems like those of training, of any size, for tests and measurements.
package layouts

import "gm/internal/dsa"

// align is the multiple to which PyTorch rounds requests, in bytes.
const align = 512

// tape records requests. Each request or free is one event in the time of the problem.
type tape struct {
	problem dsa.Problem
	now     int64
	live    int // buffers
}

// buffer is the number of a request; none stands for a request that was never made.
type buffer int32

const none buffer = -1

// alive marks the end of a buffer that has not been freed.
const alive = -1

func newTape() *tape { return &tape{problem: dsa.Problem{Align: align}} }

// alloc requests a number of bytes.
func (t *tape) alloc(size int64) buffer {
	p := &t.problem
	p.Start, p.End, p.Size = append(p.Start, t.now), append(p.End, alive), append(p.Size, size)
	t.now++
	t.live++
	return buffer(p.Len() - 1)
}

// free frees buffers, one after another.
func (t *tape) free(buffers ...buffer) {
	for _, b := range buffers {
		if b != none {
			t.problem.End[b] = t.now
			t.now++
			t.live--
		}
	}
}

// finish returns the problem. Buffers that are not freed live until its end.
func (t *tape) finish() *dsa.Problem {
	for i, end := range t.problem.End {
		if end == alive {
			t.problem.End[i] = t.now
		}
	}
	return &t.problem
}
