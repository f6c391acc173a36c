package rigid

import (
	"slices"

	"gm/internal/dsa/residue"
)

// lowerBound returns a peak, in units, that no layout is below: the greatest load, what reaches up because it is fixed or
// rigid, or what aligned buffers take.
func (m *Model) lowerBound() int64 {
	bound := m.Flat.Bound
	var steps []int64
	for i := range m.Items {
		it := &m.Items[i]
		bound = max(bound, it.Floor()+it.Top)
		if it.Step > 1 {
			steps = append(steps, it.Step)
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
func (m *Model) alignedLoad(step int64) int64 {
	change := make([]int64, m.Sections()+1)
	slack := int64(0)
	for i := range m.Rects {
		r := &m.Rects[i]
		it := &m.Items[r.Item]
		if it.Step%step != 0 || (it.Remainder+r.Low)%step != 0 {
			continue
		}
		rest := residue.Mod(-r.Size, step)
		slack = max(slack, rest)
		change[r.Lo] += r.Size + rest
		change[r.Hi] -= r.Size + rest
	}
	top, sum := int64(0), int64(0)
	for _, c := range change {
		sum += c
		top = max(top, sum)
	}
	return top - slack
}
