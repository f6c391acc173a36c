package gapfit

import (
	"cmp"
	"slices"

	"gm/internal/dsa/sections"
)

// Ordered places buffers one after another in a given order, each in a gap between those placed before that live at the
// same time. It compares each buffer with all before it, which is quadratic, so it is for small instances. It reuses its memory between
// runs.
type Ordered struct {
	placed []placement // by offset
}

// placement is a buffer that has been placed.
type placement struct {
	offset, end int64 // units
	lo, hi      int32
}

// Run places the buffers, the last of order first, each in the lowest gap that holds it, or the smallest. It writes their offsets to out
// and returns the peak, both in units. It ends early, with ok false, when stop returns true for the peak reached so far.
func (f *Ordered) Run(in *sections.Instance, order []int32, smallest bool, stop sections.Stop, out []int64) (peak int64, ok bool) {
	f.placed = f.placed[:0]
	for n := range order {
		k := order[len(order)-1-n]
		offset := find(f.placed, in.Lo[k], in.Hi[k], in.Size[k], smallest)
		p := placement{offset: offset, end: offset + in.Size[k], lo: in.Lo[k], hi: in.Hi[k]}
		at, _ := slices.BinarySearchFunc(f.placed, p, func(a, b placement) int { return cmp.Compare(a.offset, b.offset) })
		f.placed = slices.Insert(f.placed, at, p)
		out[k] = offset
		if p.end > peak || n%sections.StopEvery == 0 {
			if peak = max(peak, p.end); stop(peak) {
				return 0, false
			}
		}
	}
	return peak, true
}

// find returns the offset for a buffer of the sections [lo, hi), given those placed, by offset.
func find(placed []placement, lo, hi int32, size int64, smallest bool) int64 {
	floor := int64(0) // everything below is occupied or too small
	best, bestGap := int64(-1), int64(0)
	for i := range placed {
		p := &placed[i]
		if p.hi <= lo || p.lo >= hi {
			continue
		}
		if gap := p.offset - floor; gap >= size && (best < 0 || gap < bestGap) {
			best, bestGap = floor, gap
			if !smallest {
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
