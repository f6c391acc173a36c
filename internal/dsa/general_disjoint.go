package dsa

import (
	"cmp"
	"slices"
)

// disjoint returns rectangles that cover what those given cover, and do not overlap each other. It changes the order of
// those given.
func disjoint(rects []rect) []rect {
	if len(rects) == 1 {
		return rects
	}
	return stack(slabs(rects))
}

// slabs goes through time and unites what overlaps at a moment; a stretch of addresses that stays the same from one
// moment to the next remains one rectangle.
func slabs(rects []rect) []rect {
	var moments []int32
	for _, r := range rects {
		moments = append(moments, r.lo, r.hi)
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	slices.SortFunc(rects, func(a, b rect) int { return cmp.Compare(a.lo, b.lo) })
	var done, open, now, live []rect // but for done, ordered by low
	for i, from := range moments[:len(moments)-1] {
		live = slices.DeleteFunc(live, func(r rect) bool { return r.hi <= from })
		for ; len(rects) > 0 && rects[0].lo == from; rects = rects[1:] {
			at, _ := slices.BinarySearchFunc(live, rects[0], func(a, b rect) int { return cmp.Compare(a.low, b.low) })
			live = slices.Insert(live, at, rects[0])
		}
		now = unite(live, now[:0])
		for k := range now {
			now[k].lo, now[k].hi = from, moments[i+1]
		}
		done, open = prolong(done, open, now)
	}
	return append(done, open...)
}

// unite appends the addresses that rectangles ordered by low cover.
func unite(live, now []rect) []rect {
	for _, r := range live {
		if last := len(now) - 1; last >= 0 && now[last].low+now[last].size > r.low {
			now[last].size = max(now[last].size, r.low+r.size-now[last].low)
		} else {
			now = append(now, r)
		}
	}
	return now
}

// prolong lets those of the open rectangles go on that are there now too, and adds the others to those done.
func prolong(done, open, now []rect) (newDone, newOpen []rect) {
	i := 0
	for k := range now {
		for i < len(open) && open[i].low < now[k].low {
			done = append(done, open[i])
			i++
		}
		if i < len(open) && open[i].low == now[k].low {
			if open[i].size == now[k].size && open[i].hi == now[k].lo {
				now[k].lo = open[i].lo
			} else {
				done = append(done, open[i])
			}
			i++
		}
	}
	done = append(done, open[i:]...)
	return done, append(open[:0], now...)
}

// stack makes neighbours of the same life one.
func stack(rects []rect) []rect {
	slices.SortFunc(rects, func(a, b rect) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi), cmp.Compare(a.low, b.low))
	})
	out := rects[:1]
	for _, r := range rects[1:] {
		last := &out[len(out)-1]
		if r.lo == last.lo && r.hi == last.hi && r.low == last.low+last.size {
			last.size += r.size
		} else {
			out = append(out, r)
		}
	}
	return out
}
