package replay

import "slices"

// Borrowers assigns a stream to each tensor that is freed while other streams use it. This borrower stands for those streams. It returns
// the number of the borrower by tensor, from 0, or -1 for other tensors, and how many borrowers there are.
//
// The earlier tensors of a borrower complete before its later ones. The blocks that wait for one stream are freed in order, so that one
// borrower is enough as long as the recording freed them in order.
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
