package dsa

import (
	"cmp"
	"container/heap"
	"slices"
)

// TiedOverlap finds two tied buffers of a valid problem that live at the same time and share a byte, although no ties of distance 0
// connect them: for example, both directly follow a third. A [Solver] treats such an overlap as intended.
func (p *Problem) TiedOverlap() (a, b int32, found bool) {
	if len(p.Ties) == 0 {
		return 0, 0, false
	}
	g, err := NewGroups(p)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	shared := p.tiedBy(func(t Tie) bool { return t.Delta == 0 })
	order := make([]int32, p.Len())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(g.Of[a], g.Of[b]), cmp.Compare(shared.root(a), shared.root(b)))
	})
	for len(order) > 0 && !found {
		n := runOf(order, func(i int32) int32 { return g.Of[i] })
		a, b, found = p.overlapIn(order[:n], g, shared)
		order = order[n:]
	}
	return min(a, b), max(a, b), found
}

// runOf returns the number of elements at the beginning that have the same key.
func runOf(all []int32, key func(int32) int32) int {
	n := 1
	for n < len(all) && key(all[n]) == key(all[0]) {
		n++
	}
	return n
}

// overlapIn looks for an overlap in one group. Buffers that share an address are adjacent in it.
func (p *Problem) overlapIn(group []int32, g *Groups, shared tiedSets) (a, b int32, found bool) {
	q := &Problem{Align: 1}
	var owner []int32
	var offsets []int64
	for len(group) > 0 {
		n := runOf(group, shared.root)
		for _, x := range tallest(p.spans(group[:n]), p.Size) {
			q.Start, q.End, q.Size = append(q.Start, x.start), append(q.End, x.end), append(q.Size, p.Units(int(x.buffer)))
			owner, offsets = append(owner, x.buffer), append(offsets, g.At[x.buffer])
		}
		group = group[n:]
	}
	all := make([]int32, len(owner))
	for i := range all {
		all[i] = int32(i)
	}
	if a, b, found = q.overlap(all, offsets); found {
		a, b = owner[a], owner[b]
	}
	return a, b, found
}

// tallest returns spans that do not overlap: at each time, the largest buffer of those that live.
func tallest(spans []span, sizes []int64) []span {
	var times []int64
	for _, x := range spans {
		times = append(times, x.start, x.end)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	live := &largest{sizes: sizes}
	var all []span
	for k := range max(0, len(times)-1) {
		for ; len(spans) > 0 && spans[0].start == times[k]; spans = spans[1:] {
			heap.Push(live, spans[0])
		}
		for live.Len() > 0 && live.spans[0].end <= times[k] {
			heap.Pop(live)
		}
		switch {
		case live.Len() == 0:
		case len(all) > 0 && all[len(all)-1].end == times[k] && all[len(all)-1].buffer == live.spans[0].buffer:
			all[len(all)-1].end = times[k+1]
		default:
			all = append(all, span{times[k], times[k+1], live.spans[0].buffer})
		}
	}
	return all
}

// largest is a heap of spans, the largest buffer first.
type largest struct {
	spans []span
	sizes []int64
}

func (h *largest) Len() int { return len(h.spans) }
func (h *largest) Less(i, j int) bool {
	return h.sizes[h.spans[i].buffer] > h.sizes[h.spans[j].buffer]
}
func (h *largest) Swap(i, j int) { h.spans[i], h.spans[j] = h.spans[j], h.spans[i] }
func (h *largest) Push(x any)    { h.spans = append(h.spans, x.(span)) }
func (h *largest) Pop() any {
	last := h.spans[len(h.spans)-1]
	h.spans = h.spans[:len(h.spans)-1]
	return last
}
