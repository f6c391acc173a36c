// Package layouts makes problems to lay out that look like those of training, of any size, for tests and measurements.
package layouts

import "gm/internal/dsa"

// align is what PyTorch rounds requests to, in bytes.
const align = 512

// tape is the requests so far, one event of a problem's time each.
type tape struct {
	problem dsa.Problem
	now     int64
	live    int // buffers
}

// buffer is a request by its number; none stands for one that was never made.
type buffer int32

const none buffer = -1

// alive is the end of a buffer that was not freed yet.
const alive = -1

func newTape() *tape { return &tape{problem: dsa.Problem{Align: align}} }

// alloc requests so many bytes.
func (t *tape) alloc(size int64) buffer {
	p := &t.problem
	p.Start, p.End, p.Size = append(p.Start, t.now), append(p.End, alive), append(p.Size, size)
	t.now++
	t.live++
	return buffer(p.Len() - 1)
}

// free ends the lives of buffers, one after another.
func (t *tape) free(buffers ...buffer) {
	for _, b := range buffers {
		if b != none {
			t.problem.End[b] = t.now
			t.now++
			t.live--
		}
	}
}

// finish returns the problem; what is not freed lives on to its end.
func (t *tape) finish() *dsa.Problem {
	for i, end := range t.problem.End {
		if end == alive {
			t.problem.End[i] = t.now
		}
	}
	return &t.problem
}
