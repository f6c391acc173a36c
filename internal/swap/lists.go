package swap

// Lists holds a list of tensors for each operator, one list behind the other in one slice.
type Lists struct {
	start   []int32
	tensors []int32
}

// Of returns the tensors of an operator, ascending.
func (l *Lists) Of(op int32) []int32 { return l.tensors[l.start[op]:l.start[op+1]] }

// Readers returns the tensors that each operator uses.
func (g *Graph) Readers() Lists {
	return g.lists(func(t *Tensor) []int32 { return t.Uses })
}

// Writers returns the tensors that each operator makes.
func (g *Graph) Writers() Lists {
	return g.lists(func(t *Tensor) []int32 { return []int32{t.Made} })
}

// Enders returns the tensors that each operator is the last to use.
func (g *Graph) Enders() Lists {
	return g.lists(func(t *Tensor) []int32 { return t.Uses[len(t.Uses)-1:] })
}

// lists turns the operators of each tensor around.
func (g *Graph) lists(opsOf func(t *Tensor) []int32) Lists {
	ops := len(g.Ops)
	l := Lists{start: make([]int32, ops+1)}
	total := 0
	for t := range g.Tensors {
		for _, op := range opsOf(&g.Tensors[t]) {
			l.start[op+1]++
			total++
		}
	}
	for op := range ops {
		l.start[op+1] += l.start[op]
	}
	l.tensors = make([]int32, total)
	at := append([]int32(nil), l.start[:ops]...)
	for t := range g.Tensors {
		for _, op := range opsOf(&g.Tensors[t]) {
			l.tensors[at[op]] = int32(t)
			at[op]++
		}
	}
	return l
}
