package relax

import "slices"

// memory adds that what is held at the end of a block is within the limit while the block's last operator runs.
func (m *model) memory() {
	g := m.graph
	own := make([]int64, len(g.Ops)) // bytes that operators read and write
	for i := range g.Tensors {
		x := &g.Tensors[i]
		own[x.Made] += x.Bytes
		for _, op := range x.Uses {
			if op != x.Made {
				own[op] += x.Bytes
			}
		}
	}
	for k, op := range m.ends {
		room := m.limit - g.Ops[op].Base - own[op]
		var terms []term
		for t := range g.Tensors {
			x := &g.Tensors[t]
			if _, reads := slices.BinarySearch(x.Uses, op); reads || x.Made >= op {
				continue
			}
			if x.Recompute == 0 && x.Last() > op {
				room -= x.Bytes
			}
			if hold := at(m.hold[t], int32(k)-m.made(int32(t))); x.Recompute > 0 && hold >= 0 {
				terms = append(terms, term{hold, float64(-x.Bytes)})
			}
		}
		total := 0.0
		for _, x := range terms {
			total -= x.value
		}
		if total > float64(room) {
			scale := 1 / (total / float64(len(terms)))
			for i := range terms {
				terms[i].value *= scale
			}
			m.atLeast(-float64(room)*scale, terms...)
		}
	}
}
