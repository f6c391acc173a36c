package relax

import (
	"cmp"
	"slices"
	"sort"

	"gm/internal/swap"
)

// model is the relaxation of the schedules of a graph. The operators are divided into blocks, at the end of each of which memory is looked at. A
// tensor is held behind a block or not, and recomputed in a block or not: once counts, so that this holds for each schedule. With a block an
// operator these are the variables of Checkmate.
type model struct {
	program
	graph *swap.Graph
	limit int64
	ends  []int32   // the last operator of each block
	block []int32   // of each operator
	until []int32   // the last block in which each tensor may be of use
	hold  [][]int32 // of each tensor, the variable that it is held behind each block, from that in which it is made on; none, or -1, where it cannot be chosen
	again [][]int32 // of each tensor, the variable that it is recomputed in each block, likewise
}

// made returns the block in which a tensor is made.
func (m *model) made(t int32) int32 { return m.block[m.graph.Tensors[t].Made] }

// critical lists operators over the limit, at most so many: those of most memory in stretches of the same length.
func critical(g *swap.Graph, limit int64, most int) []int32 {
	plain := g.Plain()
	var all []int32
	for op, used := range plain {
		if used > limit {
			all = append(all, int32(op))
		}
	}
	if len(all) <= most {
		return all
	}
	picked := make([]int32, most)
	for i := range picked {
		part := all[i*len(all)/most : (i+1)*len(all)/most]
		picked[i] = slices.MaxFunc(part, func(a, b int32) int { return cmp.Compare(plain[a], plain[b]) })
	}
	return picked
}

func newModel(g *swap.Graph, limit int64, most int) *model {
	m := &model{graph: g, limit: limit, ends: critical(g, limit, most)}
	if last := int32(len(g.Ops) - 1); len(m.ends) == 0 || m.ends[len(m.ends)-1] < last {
		m.ends = append(m.ends, last)
	}
	m.block = make([]int32, len(g.Ops))
	for op := range m.block {
		m.block[op] = int32(sort.Search(len(m.ends), func(k int) bool { return m.ends[k] >= int32(op) }))
	}
	m.findUntil()
	m.variables()
	for t := range g.Tensors {
		m.presence(int32(t))
	}
	m.ghosts()
	m.memory()
	return m
}

// findUntil finds the last blocks in which tensors may be of use: those of their last use, or of what is computed from them.
func (m *model) findUntil() {
	n := len(m.graph.Tensors)
	m.until = make([]int32, n)
	for t := range n {
		m.until[t] = m.block[m.graph.Tensors[t].Last()]
	}
	for changed := true; changed; {
		changed = false
		for t := n - 1; t >= 0; t-- {
			x := &m.graph.Tensors[t]
			if x.Recompute == 0 {
				continue
			}
			for _, from := range x.From {
				if m.graph.Tensors[from].Recompute > 0 && m.until[from] < m.until[t] {
					m.until[from], changed = m.until[t], true
				}
			}
		}
	}
}

// variables adds those of all tensors that can be recomputed: from the block in which one is made to the last in which it may be of use.
func (m *model) variables() {
	m.hold, m.again = make([][]int32, len(m.graph.Tensors)), make([][]int32, len(m.graph.Tensors))
	for t := range m.graph.Tensors {
		x := &m.graph.Tensors[t]
		if x.Recompute == 0 {
			continue
		}
		made := m.made(int32(t))
		last := m.block[x.Last()]
		for k := made; k <= m.until[t]; k++ {
			hold, again := int32(-1), int32(-1)
			if k < m.until[t] && !(k == last && m.ends[k] == x.Last()) {
				hold = m.variable(0)
			}
			if k > made || last == made {
				again = m.variable(float64(x.Recompute))
			}
			m.hold[t], m.again[t] = append(m.hold[t], hold), append(m.again[t], again)
		}
	}
}

// at returns the variable at a place in a list, -1 if there is none.
func at(list []int32, k int32) int32 {
	if k < 0 || int(k) >= len(list) {
		return -1
	}
	return list[k]
}

// presence adds the rows of one tensor: it is there when it is read, it is held if it was there, and it is recomputed from what is there.
func (m *model) presence(t int32) {
	x := &m.graph.Tensors[t]
	if x.Recompute == 0 {
		return
	}
	made, last := m.made(t), m.block[x.Last()]
	for k := made; k <= m.until[t]; k++ {
		before, again, hold := at(m.hold[t], k-1-made), at(m.again[t], k-made), at(m.hold[t], k-made)
		if k > made && m.readIn(t, k) {
			m.row(1, [2]int32{before, again}, -1)
		}
		switch {
		case hold < 0:
		case k == last: // it leaves the device with its last use, and may be recomputed behind that
			m.row(0, [2]int32{again, -1}, hold)
		case k > made:
			m.row(0, [2]int32{before, again}, hold)
		}
		if again >= 0 {
			m.inputs(t, k, again)
		}
	}
}

// row adds that the sum of two variables is at least a number and a third variable. Those that are -1 are left out.
func (m *model) row(right float64, sum [2]int32, less int32) {
	var terms []term
	for _, v := range sum {
		if v >= 0 {
			terms = append(terms, term{v, 1})
		}
	}
	if less >= 0 {
		terms = append(terms, term{less, -1})
	}
	m.atLeast(right, terms...)
}

// readIn reports whether an operator of a block uses a tensor.
func (m *model) readIn(t, k int32) bool {
	uses := m.graph.Tensors[t].Uses
	i := sort.Search(len(uses), func(i int) bool { return m.block[uses[i]] >= k })
	return i < len(uses) && m.block[uses[i]] == k
}

// inputs adds that a tensor is recomputed in a block from others.
func (m *model) inputs(t, k, again int32) {
	for _, from := range m.graph.Tensors[t].From {
		x := &m.graph.Tensors[from]
		made := m.made(from)
		switch {
		case x.Recompute == 0 && m.block[x.Last()] >= k, x.Recompute > 0 && made == k:
		case x.Recompute == 0:
			m.row(0, [2]int32{-1, -1}, again)
		default:
			m.row(0, [2]int32{at(m.hold[from], k-1-made), at(m.again[from], k-made)}, again)
		}
	}
}
