package lp

import (
	"cmp"
	"slices"

	"gm/internal/dsa"
)

// life is a time in which a buffer lives.
type life struct {
	from, until int64
	buffer      int32
}

// conflicts returns the pairs of buffers that live at the same time and are not tied, in order. It returns false when there are too many.
func conflicts(p *dsa.Problem, buffers []int32) ([]pair, bool) {
	var pairs []pair
	var alive []life
	group := groups(p)
	for _, l := range lives(p, buffers) {
		alive = slices.DeleteFunc(alive, func(other life) bool { return other.until <= l.from })
		if len(pairs)+len(alive) > maxPairs {
			return nil, false
		}
		for _, other := range alive {
			if group == nil || group[l.buffer] != group[other.buffer] {
				pairs = append(pairs, pair{min(l.buffer, other.buffer), max(l.buffer, other.buffer)})
			}
		}
		alive = append(alive, l)
	}
	slices.SortFunc(pairs, func(x, y pair) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	return slices.Compact(pairs), true
}

// lives returns the lives of buffers by their start. In a problem that repeats, a life that continues in the next iteration is split.
func lives(p *dsa.Problem, buffers []int32) []life {
	var all []life
	for _, i := range buffers {
		from, until := p.Start[i], p.End[i]
		if p.Period > 0 {
			length := int64(min(uint64(until)-uint64(from), uint64(p.Period)))
			if from %= p.Period; from < 0 {
				from += p.Period
			}
			if over := length - (p.Period - from); over > 0 {
				all = append(all, life{0, over, i})
				length -= over
			}
			until = from + length
		}
		all = append(all, life{from, until, i})
	}
	slices.SortFunc(all, func(x, y life) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.buffer, y.buffer)) })
	return all
}

// groups returns for each buffer the group of the buffers tied to it, or nil without ties.
func groups(p *dsa.Problem) []int32 {
	if len(p.Ties) == 0 {
		return nil
	}
	group := make([]int32, p.Len())
	for i := range group {
		group[i] = int32(i)
	}
	find := func(i int32) int32 {
		for group[i] != i {
			group[i] = group[group[i]]
			i = group[i]
		}
		return i
	}
	for _, t := range p.Ties {
		group[find(t.A)] = find(t.B)
	}
	for i := range group {
		group[i] = find(int32(i))
	}
	return group
}
