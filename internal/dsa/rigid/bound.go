package rigid

import (
	"slices"

	"gm/internal/dsa/residue"
)

// lowerBound returns a lower bound of the peak, in units: the greatest load, the top of an item that is fixed or tall, or the space that
// aligned buffers need.
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

// maxSteps is the number of different alignments that are examined.
const maxSteps = 16

// alignedLoad returns the least space for the rectangles that begin at multiples of step: of those that live at the same time,
// each except the highest occupies a multiple of step.
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
