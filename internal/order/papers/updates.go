package papers

import (
	"slices"

	"gm/internal/order"
)

const (
	updatePhase = 2
	// updateFactor is the memory of an update as a multiple of its gradient, ROAM's adam_factor.
	updateFactor = 3
)

// earlyUpdates returns an order in which an update of a parameter runs as soon as its gradient is there, and the problem renumbered by that
// order, in which it has to: before the next operator that is none of an update. Excepted are updates at whose gradient the activations and
// updateFactor times the gradient exceed the peak of the activations; they keep their place in the program.
func earlyUpdates(l *order.Links) ([]int32, *order.Problem) {
	p := l.Problem
	if p.Phases == nil {
		return order.Program(p.Ops()), p
	}
	m := mover{Links: l, waits: make([]int32, p.Ops()), ran: make([]bool, p.Ops()), late: lateUpdates(l)}
	for op := range m.waits {
		m.waits[op] = int32(len(l.Preds.Of(int32(op))))
	}
	for op := range int32(p.Ops()) {
		if !m.ran[op] {
			m.run(op)
		}
	}
	return m.made, renumber(p, m.made, m.pairs)
}

// mover makes the order.
type mover struct {
	*order.Links
	waits []int32
	ran   []bool
	late  []bool
	made  []int32
	pairs [][2]int32 // updates, and the operators that they come before
	early []int32    // updates that ran since the last other operator
}

// run runs an operator of the program, and then all updates that are ready and may run early.
func (m *mover) run(op int32) {
	for _, update := range m.early {
		m.pairs = append(m.pairs, [2]int32{update, op})
	}
	m.early = m.early[:0]
	ready := m.finish(op, nil)
	for len(ready) > 0 {
		update := ready[0]
		ready = m.finish(update, ready[1:])
		m.early = append(m.early, update)
	}
}

// finish runs an operator, and appends the updates that are ready behind it.
func (m *mover) finish(op int32, ready []int32) []int32 {
	m.ran[op] = true
	m.made = append(m.made, op)
	for _, next := range m.Succs.Of(op) {
		if m.waits[next]--; m.waits[next] == 0 && m.Problem.Phases[next] == updatePhase && !m.late[next] {
			ready = append(ready, next)
		}
	}
	return ready
}

// lateUpdates reports which operators of updates wait for their place in the program.
func lateUpdates(l *order.Links) []bool {
	p := l.Problem
	held := activations(p)
	most := slices.Max(append(held, 0))
	late := make([]bool, p.Ops())
	for op := range late {
		if p.Phases[op] != updatePhase {
			continue
		}
		for _, t := range l.Touched.Of(int32(op)) {
			tensor := &p.Tensors[t]
			if made := tensor.Made(); p.Phases[made] != updatePhase && held[made]+updateFactor*tensor.Bytes > most {
				late[op] = true
			}
		}
	}
	return late
}

// activations returns, for each operator of the program, the bytes of the tensors that the forward pass makes for later phases and that are
// in memory then.
func activations(p *order.Problem) []int64 {
	held := make([]int64, p.Ops()+1)
	for i := range p.Tensors {
		t := &p.Tensors[i]
		last := t.Ops[len(t.Ops)-1]
		if p.Phases[t.Made()] == 0 && p.Phases[last] > 0 {
			held[t.Made()] += t.Bytes
			held[last+1] -= t.Bytes
		}
	}
	var sum int64
	for op := range held {
		sum += held[op]
		held[op] = sum
	}
	return held[:p.Ops()]
}

// renumber returns a problem with operators numbered by an order, and more pairs, of old numbers, that keep their order.
func renumber(p *order.Problem, made []int32, pairs [][2]int32) *order.Problem {
	n := len(made)
	place := make([]int32, n)
	r := &order.Problem{Temp: make([]int64, n), Phases: make([]int8, n), Tensors: slices.Clone(p.Tensors)}
	for i, op := range made {
		place[op] = int32(i)
		r.Temp[i], r.Phases[i] = p.Temp[op], p.Phases[op]
	}
	for i := range r.Tensors {
		ops := make([]int32, len(p.Tensors[i].Ops))
		for j, op := range p.Tensors[i].Ops {
			ops[j] = place[op]
		}
		slices.Sort(ops)
		r.Tensors[i].Ops = ops
	}
	for _, pair := range slices.Concat(p.Before, pairs) {
		r.Before = append(r.Before, [2]int32{place[pair[0]], place[pair[1]]})
	}
	return r
}
