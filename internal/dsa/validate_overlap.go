package dsa

import (
	"cmp"
	"slices"
)

// TiedOverlap finds two tied buffers of a valid problem that live at one time and share a byte, though no ties of distance 0 lead
// from one to the other: both stand directly behind a third, for instance. A [Solver] takes that for intended.
func (p *Problem) TiedOverlap() (a, b int32, found bool) {
	if len(p.Ties) == 0 {
		return 0, 0, false
	}
	g, err := newGroups(p)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	shared := p.tiedBy(func(t Tie) bool { return t.Delta == 0 })
	var order []int32
	for i := range int32(p.Len()) {
		if !p.empty(i) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(g.of[a], g.of[b]), cmp.Compare(g.at[a], g.at[b]))
	})
	for k, i := range order {
		end := g.at[i] + granules(p.Size[i], p.Align)
		for _, j := range order[k+1:] {
			if g.of[j] != g.of[i] || g.at[j] >= end {
				break
			}
			if !shared.same(i, j) && p.meet(i, j) {
				return min(i, j), max(i, j), true
			}
		}
	}
	return 0, 0, false
}

// meet says whether two buffers live at one time.
func (p *Problem) meet(a, b int32) bool {
	for _, x := range p.spans([]int32{a}) {
		for _, y := range p.spans([]int32{b}) {
			if x.start < y.end && y.start < x.end {
				return true
			}
		}
	}
	return false
}
