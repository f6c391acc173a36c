package rigid

import (
	"cmp"
	"slices"
)

// disjoint returns rectangles that cover the same area as the given ones and do not overlap each other. It reorders the given slice.
func disjoint(rects []Rect) []Rect {
	if len(rects) == 1 {
		return rects
	}
	return stack(slabs(rects))
}

// slabs goes through time and merges the rectangles that overlap at a moment. A range of addresses that stays the same from one
// moment to the next remains one rectangle.
func slabs(rects []Rect) []Rect {
	var moments []int32
	for _, r := range rects {
		moments = append(moments, r.Lo, r.Hi)
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	slices.SortFunc(rects, func(a, b Rect) int { return cmp.Compare(a.Lo, b.Lo) })
	var done, open, now, live []Rect // ordered by low, except done
	for i, from := range moments[:len(moments)-1] {
		live = slices.DeleteFunc(live, func(r Rect) bool { return r.Hi <= from })
		for ; len(rects) > 0 && rects[0].Lo == from; rects = rects[1:] {
			at, _ := slices.BinarySearchFunc(live, rects[0], func(a, b Rect) int { return cmp.Compare(a.Low, b.Low) })
			live = slices.Insert(live, at, rects[0])
		}
		now = unite(live, now[:0])
		for k := range now {
			now[k].Lo, now[k].Hi = from, moments[i+1]
		}
		done, open = prolong(done, open, now)
	}
	return append(done, open...)
}

// unite appends the addresses that rectangles ordered by low cover.
func unite(live, now []Rect) []Rect {
	for _, r := range live {
		if last := len(now) - 1; last >= 0 && now[last].Low+now[last].Size > r.Low {
			now[last].Size = max(now[last].Size, r.Low+r.Size-now[last].Low)
		} else {
			now = append(now, r)
		}
	}
	return now
}

// prolong extends the open rectangles that continue in now, and moves the others to done.
func prolong(done, open, now []Rect) (newDone, newOpen []Rect) {
	i := 0
	for k := range now {
		for i < len(open) && open[i].Low < now[k].Low {
			done = append(done, open[i])
			i++
		}
		if i < len(open) && open[i].Low == now[k].Low {
			if open[i].Size == now[k].Size && open[i].Hi == now[k].Lo {
				now[k].Lo = open[i].Lo
			} else {
				done = append(done, open[i])
			}
			i++
		}
	}
	done = append(done, open[i:]...)
	return done, append(open[:0], now...)
}

// stack merges adjacent rectangles of the same life.
func stack(rects []Rect) []Rect {
	slices.SortFunc(rects, func(a, b Rect) int {
		return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Low, b.Low))
	})
	out := rects[:1]
	for _, r := range rects[1:] {
		last := &out[len(out)-1]
		if r.Lo == last.Lo && r.Hi == last.Hi && r.Low == last.Low+last.Size {
			last.Size += r.Size
		} else {
			out = append(out, r)
		}
	}
	return out
}
