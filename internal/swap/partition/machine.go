package partition

// Machine tells what choices of one problem come to.
type Machine struct {
	p       *Problem
	maker   []int32   // of each value
	readers [][]int32 // of each value: operators of the forward pass that are fused with it
	last    []int32   // of each value: where the forward pass reads it last
	grows   []int64   // by how many bytes the memory in use grows at each place of a run
	run     []int32   // operators of the backward pass, with those that are recomputed
	ends    []int32   // of each value: the place of its last use in the backward pass
	again   []int32   // of each value: the place at which it is recomputed
	round   int32     // a mark that is older counts as none
	wanted  []int32   // marks of the operators that are recomputed
	needed  []int32   // marks of the values that the backward pass needs
	begun   []int32   // marks of the operators that the backward pass has, or waits for what they read
	ready   []int32   // marks of those that it has
	open    []int32
}

// NewMachine returns a machine for a problem that keeps to the rules.
func NewMachine(p *Problem) *Machine {
	n := len(p.Values)
	m := &Machine{
		p: p, maker: make([]int32, n), readers: make([][]int32, n), last: make([]int32, n), ends: make([]int32, n), again: make([]int32, n),
		needed: make([]int32, n), wanted: make([]int32, len(p.Ops)), begun: make([]int32, len(p.Ops)), ready: make([]int32, len(p.Ops)),
	}
	for i := range p.Ops {
		for _, v := range p.Ops[i].Makes {
			m.maker[v], m.last[v] = int32(i), int32(i)
		}
		if i >= p.Forward {
			continue
		}
		for _, v := range p.Ops[i].Reads {
			m.last[v] = int32(i)
			if p.Ops[i].Fused && p.Ops[m.maker[v]].Fused {
				m.readers[v] = append(m.readers[v], int32(i))
			}
		}
	}
	for i := p.Forward - 1; i >= 0; i-- { // what is computed where it is read is read from the same values there
		for _, made := range p.Ops[i].Makes {
			for _, v := range p.Ops[i].Reads {
				if p.Values[made].Inlined {
					m.last[v] = max(m.last[v], m.last[made])
				}
			}
		}
	}
	return m
}

// Cost is what a choice comes to.
type Cost struct {
	Peak   int64 // bytes
	Over   int64 // bytes beyond the limit, of all operators that run while there is less; MaxBytes at most
	Places int64 // those operators
	NS     int64 // of what is recomputed
	Misses int32 // a value that would have to be saved, as it cannot be recomputed; -1 if there is none
}

// Run returns the cost of saving the values that are marked. Others that are needed are recomputed just before that, once.
func (m *Machine) Run(saved []bool, limit int64) Cost {
	c := Cost{Misses: -1}
	m.round++
	m.want(saved, &c)
	if c.Misses >= 0 {
		return c
	}
	m.order(saved)
	m.place()
	m.weigh(saved)
	var now int64
	for _, bytes := range m.grows[:m.p.Forward+len(m.run)] {
		now += bytes
		c.Peak = max(c.Peak, now)
		if now > limit {
			c.Over = min(c.Over+now-limit, MaxBytes)
			c.Places++
		}
	}
	return c
}

// Needs reports whether the backward pass of the last run needed a value of the forward pass, saved or not.
func (m *Machine) Needs(v int32) bool { return m.needed[v] == m.round }

// Maker returns the operator that makes a value.
func (m *Machine) Maker(v int32) int32 { return m.maker[v] }

// want finds what the backward pass needs of the forward pass, and what is recomputed for that.
func (m *Machine) want(saved []bool, c *Cost) {
	m.open = m.open[:0]
	for i := m.p.Forward; i < len(m.p.Ops); i++ {
		m.open = append(m.open, int32(i))
	}
	for len(m.open) > 0 {
		op := m.open[len(m.open)-1]
		m.open = m.open[:len(m.open)-1]
		for _, v := range m.p.Ops[op].Reads {
			from := m.maker[v]
			if int(from) >= m.p.Forward || m.needed[v] == m.round {
				continue
			}
			m.needed[v] = m.round
			switch {
			case saved[v] || m.wanted[from] == m.round:
			case !m.p.Ops[from].Able:
				c.Misses = v
				return
			default:
				m.wanted[from] = m.round
				c.NS += m.p.Ops[from].NS
				m.open = append(m.open, from)
			}
		}
	}
}

// order lists what the backward pass runs. Operators that are recomputed come right before the first that needs them, and what is fused with
// them, once all that it reads is there.
func (m *Machine) order(saved []bool) {
	m.run = m.run[:0]
	for i := m.p.Forward; i < len(m.p.Ops); i++ {
		m.add(int32(i), saved)
	}
}

func (m *Machine) add(op int32, saved []bool) {
	m.begun[op] = m.round
	for _, v := range m.p.Ops[op].Reads {
		if m.lacks(v, saved) {
			m.add(m.maker[v], saved)
		}
	}
	m.run = append(m.run, op)
	m.ready[op] = m.round
	if m.p.Ops[op].Fused {
		m.follow(op, saved)
	}
}

// lacks reports whether a value of the forward pass is yet to be recomputed.
func (m *Machine) lacks(v int32, saved []bool) bool {
	from := m.maker[v]
	return int(from) < m.p.Forward && !saved[v] && m.ready[from] != m.round
}

// follow adds what is recomputed in the same kernel as an operator.
func (m *Machine) follow(op int32, saved []bool) {
	for _, made := range m.p.Ops[op].Makes {
	next:
		for _, reader := range m.readers[made] {
			if m.wanted[reader] != m.round || m.begun[reader] == m.round {
				continue
			}
			for _, v := range m.p.Ops[reader].Reads {
				if m.lacks(v, saved) {
					continue next
				}
			}
			m.add(reader, saved)
		}
	}
}

// place finds where each value is needed in the backward pass.
func (m *Machine) place() {
	for i, op := range m.run {
		for _, v := range m.p.Ops[op].Makes {
			m.again[v], m.ends[v] = int32(i), int32(i)
		}
	}
	for i, op := range m.run {
		for _, v := range m.p.Ops[op].Reads {
			m.ends[v] = int32(i)
		}
	}
}

// weigh counts the memory in use.
func (m *Machine) weigh(saved []bool) {
	forward, end := int32(m.p.Forward), int32(m.p.Forward+len(m.run))
	if need := int(end) + 1; cap(m.grows) < need {
		m.grows = make([]int64, 2*need)
	}
	m.grows = m.grows[:end+1]
	clear(m.grows)
	for v, value := range m.p.Values {
		from, last := m.maker[v], forward+m.ends[v]+1 // in the backward pass
		if value.Kept {
			last = end
		}
		switch {
		case from >= forward:
			m.span(forward+m.again[v], last, value.Bytes)
		case value.Kept, saved[v] && m.needed[v] == m.round:
			m.span(from, last, value.Bytes)
		case !value.Inlined:
			m.span(from, m.last[v]+1, value.Bytes)
		}
		if m.wanted[from] == m.round { // the backward pass makes one of its own, and needs it unless it is saved
			last = forward + m.again[v] + 1
			if !saved[v] {
				last = forward + m.ends[v] + 1
			}
			m.span(forward+m.again[v], last, value.Bytes)
		}
	}
}

// span adds bytes that are in use from a place on, up to the one before another.
func (m *Machine) span(first, end int32, bytes int64) {
	m.grows[first] += bytes
	m.grows[end] -= bytes
}
