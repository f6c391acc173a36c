package bilevel

import "gm/internal/dsa"

// Boxes returns the buffers of each box of a problem, by class; whole makes each occurrence one box.
func Boxes(p *dsa.Problem, whole bool) map[int32][][]int32 {
	boxes := map[int32][][]int32{}
	for _, b := range foldParts(p, newEvents(p), whole).boxes {
		boxes[b.class] = append(boxes[b.class], b.buffers)
	}
	return boxes
}
