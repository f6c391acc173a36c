package relax

// ghosts adds rows that hold for schedules and not for fractions of them. Where a tensor is away between two uses, all that it is computed from is
// there again before the second one. What of that has seen its last use before is recomputed then: all of it, once, where a fraction of a schedule
// recomputes a tenth of it and uses that for a tenth of the tensor ten times.
func (m *model) ghosts() {
	once := map[int32][]int32{} // variables of dead tensors: recomputed up to a block, from that of the last use on
	for t := range m.graph.Tensors {
		x := &m.graph.Tensors[t]
		if x.Recompute == 0 {
			continue
		}
		after := x.Made
		for _, need := range x.Uses {
			m.ghostsOf(int32(t), after, need, once)
			after = need
		}
	}
}

// ghostsOf adds the rows of a tensor between two operators.
func (m *model) ghostsOf(t, after, need int32, once map[int32][]int32) {
	x := &m.graph.Tensors[t]
	first, last := m.block[after], m.block[need]
	if first == last {
		return
	}
	away := int32(-1) // the variable that it is away behind some block
	for _, from := range x.From {
		p := &m.graph.Tensors[from]
		if p.Last() > after || p.Recompute == 0 {
			continue
		}
		if away < 0 {
			away = m.variable(0)
			for k := first; k < last; k++ {
				if hold := at(m.hold[t], k-m.made(t)); hold >= 0 {
					m.atLeast(1, term{away, 1}, term{hold, 1})
				}
			}
		}
		m.atLeast(0, term{m.once(from, last, once), 1}, term{away, -1})
	}
}

// once returns the variable that says that a dead tensor was recomputed up to a block.
func (m *model) once(p, k int32, once map[int32][]int32) int32 {
	x := &m.graph.Tensors[p]
	first := m.block[x.Last()]
	for int(k-first) >= len(once[p]) {
		j := first + int32(len(once[p]))
		v := m.variable(0)
		once[p] = append(once[p], v)
		terms := []term{{v, -1}}
		if j > first {
			terms = append(terms, term{once[p][j-1-first], 1})
		}
		if again := at(m.again[p], j-m.made(p)); again >= 0 {
			terms = append(terms, term{again, 1})
		}
		m.atLeast(0, terms...)
		for _, from := range x.From {
			if q := &m.graph.Tensors[from]; q.Last() <= x.Last() && q.Recompute > 0 {
				m.atLeast(0, term{m.once(from, j, once), 1}, term{v, -1})
			}
		}
	}
	return once[p][k-first]
}
