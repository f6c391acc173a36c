package dsa

import (
	"cmp"
	"slices"
)

// orderedFit places buffers one after another by a key, each in a gap between those placed before that live at the
// same time: the lowest gap that holds it, or the smallest. By size and with the smallest gap it is what XLA and
// TensorFlow Lite do. It compares each buffer with all before it: quadratic, so it is for small instances.
type orderedFit struct {
	by       key
	smallest bool
}

// placement is a buffer that has its place.
type placement struct {
	offset, end int64 // units
	lo, hi      int32
}

// layout implements method.
func (m orderedFit) layout(in *instance, w *workspace, stop stopFunc, out []int64) (peak int64, ok bool) {
	rank := w.ranking.byKey(in, m.by)
	order := w.ranking.order // lowest rank first
	w.placed = w.placed[:0]
	for n := range order {
		k := order[len(rank)-1-n]
		offset := m.find(w.placed, in.lo[k], in.hi[k], in.size[k])
		p := placement{offset: offset, end: offset + in.size[k], lo: in.lo[k], hi: in.hi[k]}
		at, _ := slices.BinarySearchFunc(w.placed, p, func(a, b placement) int { return cmp.Compare(a.offset, b.offset) })
		w.placed = slices.Insert(w.placed, at, p)
		out[k] = offset
		if p.end > peak || n%stopEvery == 0 {
			if peak = max(peak, p.end); stop(peak) {
				return 0, false
			}
		}
	}
	return peak, true
}

// find returns the offset for a buffer of the sections [lo, hi), given those placed, ordered by offset.
func (m orderedFit) find(placed []placement, lo, hi int32, size int64) int64 {
	floor := int64(0) // all below is taken or too small
	best, bestGap := int64(-1), int64(0)
	for i := range placed {
		p := &placed[i]
		if p.hi <= lo || p.lo >= hi {
			continue
		}
		if gap := p.offset - floor; gap >= size && (best < 0 || gap < bestGap) {
			best, bestGap = floor, gap
			if !m.smallest {
				return best
			}
		}
		floor = max(floor, p.end)
	}
	if best < 0 {
		return floor
	}
	return best
}
