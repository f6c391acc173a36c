package replay

import "slices"

// Borrowers returns, for each tensor that is freed while other streams use it, the number from 0 of a stream that stands for these, and
// how many such streams there are; other tensors have -1. The earlier tensors of a borrower are all complete before its later ones: the
// blocks that wait for one stream are freed in order, so that, as long as the recording freed them in order, that is one stream.
func (p *Program) Borrowers() (of []int32, n int) {
	ends := p.ends()
	of = slices.Repeat([]int32{-1}, len(p.Sizes))
	var busy []int64 // by borrower, the last step that it is waited for
	for step, kind := range p.Kinds {
		if kind != Request {
			continue
		}
		t := p.Tensors[step]
		i := slices.IndexFunc(busy, func(last int64) bool { return last <= ends[t] })
		if i < 0 {
			i = len(busy)
			busy = append(busy, 0)
		}
		busy[i] = ends[t]
		of[t] = int32(i)
	}
	return of, len(busy)
}
