package simulate

import (
	"slices"

	"gm/internal/swap"
)

// due lists tensors that an action has touched, each at the operator that uses it next. An operator need not look at others: they have been on the
// device since they were made or since another operator looked. So a step takes no longer the more operators hold on to a tensor.
type due struct {
	graph *swap.Graph
	first []int32 // of each operator: 1 + a tensor, 0 for none
	next  []int32 // of each tensor: likewise the next one of its operator
	at    []int32 // of each tensor: 1 + the operator that it is due at, 0 for none
	taken []int32
}

func newDue(g *swap.Graph) due {
	return due{graph: g, first: make([]int32, len(g.Ops)), next: make([]int32, len(g.Tensors)), at: make([]int32, len(g.Tensors))}
}

func (d *due) clear() {
	clear(d.first)
	clear(d.at)
}

// add has a tensor looked at by the first operator from op on that uses it.
func (d *due) add(t, op int32) {
	if d.at[t] != 0 {
		return
	}
	uses := d.graph.Tensors[t].Uses
	i, _ := slices.BinarySearch(uses, op)
	if i == len(uses) {
		return
	}
	d.at[t] = uses[i] + 1
	d.first[uses[i]], d.next[t] = t+1, d.first[uses[i]]
}

// take returns the tensors that are due at an operator, ascending, and forgets them. They are valid until the next call.
func (d *due) take(op int32) []int32 {
	d.taken = d.taken[:0]
	for t := d.first[op] - 1; t >= 0; t = d.next[t] - 1 {
		d.taken = append(d.taken, t)
		d.at[t] = 0
	}
	slices.Sort(d.taken)
	return d.taken
}
