package bilevel

import "gm/internal/dsa"

// Boxes returns the buffers of each box of a problem, by class.
func Boxes(p *dsa.Problem) map[int32][][]int32 {
	boxes := map[int32][][]int32{}
	for _, b := range foldParts(p, newEvents(p)).boxes {
		boxes[b.class] = append(boxes[b.class], b.buffers)
	}
	return boxes
}
