package policy

import (
	"sort"

	"gm/internal/swap"
)

// movedBound returns the bytes that every schedule of g's steps has to bring back to a device of a number of bytes, by copies or by computing
// them again. For tensors of one size it is close to what [planBelady] takes, which no other policy betters.
//
// At an operator that is over the limit, what is beyond it is away and has to come back. Of what is beyond it at a later one, only that
// can have been away all the time which nothing in between uses. So the bytes at a row of operators add up, less those of the tensors that
// neighbours have in common; the bound is the greatest such sum.
func movedBound(g *swap.Graph, device int64) int64 {
	p := newProblem(g, swap.Limits{Device: device})
	ops := p.overLimit()
	common := p.commonGaps(ops)
	most := int64(0)
	sums := make([]int64, len(ops))
	for b := range ops {
		excess := p.Plain[ops[b]] - device
		sums[b] = excess
		for a := range b {
			sums[b] = max(sums[b], sums[a]+max(0, excess-common[a][b]))
		}
		most = max(most, sums[b])
	}
	return most
}

// movedOps is how many operators movedBound looks at.
const movedOps = 256

// overLimit lists operators that are over the limit, evenly spread where they are many.
func (p *problem) overLimit() []int32 {
	var ops []int32
	for op, used := range p.Plain {
		if used > p.Limits.Device {
			ops = append(ops, int32(op))
		}
	}
	n := min(len(ops), movedOps)
	for i := range n {
		ops[i] = ops[i*len(ops)/n]
	}
	return ops[:n]
}

// commonGaps returns, for any two of some operators, the bytes of the tensors that neither they nor any between them use.
func (p *problem) commonGaps(ops []int32) [][]int64 {
	common := make([][]int64, len(ops))
	for a := range common {
		common[a] = make([]int64, len(ops))
	}
	for i := range p.Graph.Tensors {
		t := &p.Graph.Tensors[i]
		after := t.Made
		for _, use := range t.Uses {
			first := sort.Search(len(ops), func(i int) bool { return ops[i] > after })
			end := sort.Search(len(ops), func(i int) bool { return ops[i] >= use })
			if first < end {
				common[first][end-1] += t.Bytes
			}
			after = use
		}
	}
	// So far that is by the first and the last operator of each gap. Gaps that begin before one and end behind the other cover both.
	for a := range ops {
		for b := len(ops) - 1; b >= 0; b-- {
			if a > 0 {
				common[a][b] += common[a-1][b]
			}
			if b+1 < len(ops) {
				common[a][b] += common[a][b+1]
			}
			if a > 0 && b+1 < len(ops) {
				common[a][b] -= common[a-1][b+1]
			}
		}
	}
	return common
}
