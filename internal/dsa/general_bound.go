package dsa

import "slices"

// lowerBound returns a peak, in units, that no layout is below: the greatest load, what reaches up because it is fixed or
// rigid, or what aligned buffers take.
func (m *model) lowerBound() int64 {
	bound := m.flat.bound
	var steps []int64
	for i := range m.items {
		it := &m.items[i]
		bound = max(bound, it.floor()+it.top)
		if it.step > 1 {
			steps = append(steps, it.step)
		}
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	for _, step := range steps[max(0, len(steps)-maxSteps):] {
		bound = max(bound, m.alignedLoad(step))
	}
	return bound
}

// maxSteps is how many different alignments are looked at.
const maxSteps = 16

// alignedLoad returns what the rectangles that begin at multiples of step take at least: where they live at one time,
// each but the highest takes up a multiple of it.
func (m *model) alignedLoad(step int64) int64 {
	change := make([]int64, m.sections()+1)
	slack := int64(0)
	for i := range m.rects {
		r := &m.rects[i]
		it := &m.items[r.item]
		if it.step%step != 0 || (it.rest+r.low)%step != 0 {
			continue
		}
		rest := mod(-r.size, step)
		slack = max(slack, rest)
		change[r.lo] += r.size + rest
		change[r.hi] -= r.size + rest
	}
	top, sum := int64(0), int64(0)
	for _, c := range change {
		sum += c
		top = max(top, sum)
	}
	return top - slack
}
