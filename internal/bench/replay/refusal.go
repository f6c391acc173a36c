package replay

import (
	"slices"

	"gm/internal/blocks"
	"gm/internal/cuda"
)

// Refusal is a request that failed while a trace was recorded.
type Refusal struct {
	Step   int // the steps before it
	Row    int64
	TimeNS int64
	Size   int64 // bytes
	Stream cuda.Stream
	Pool   blocks.Pool
}

// Through returns the program up to a request that failed, with that request as its last.
func (p *Program) Through(r Refusal) *Program {
	q := *p
	q.Kinds, q.Tensors = slices.Clip(p.Kinds[:r.Step]), slices.Clip(p.Tensors[:r.Step])
	q.Rows, q.TimesNS = slices.Clip(p.Rows[:r.Step]), slices.Clip(p.TimesNS[:r.Step])
	tensors := 0
	for _, kind := range q.Kinds {
		if kind == Alloc {
			tensors++
		}
	}
	q.Sizes, q.Streams, q.Pools = slices.Clip(p.Sizes[:tensors]), slices.Clip(p.Streams[:tensors]), slices.Clip(p.Pools[:tensors])
	q.step(Alloc, q.tensor(r.Size, int64(r.Stream), int32(r.Pool)), r.Row, r.TimeNS)
	q.Refusals = nil
	return &q
}
