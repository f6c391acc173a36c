package order

import "slices"

// Links are the operators right before and right behind each operator, and the tensors that it touches.
type Links struct {
	Problem *Problem
	Preds   Lists // operators that come before
	Succs   Lists
	Touched Lists // tensors
}

// Lists are lists of numbers, one for each operator, one behind the other in one slice.
type Lists struct {
	start []int32
	all   []int32
}

// Of returns the list of an operator, ascending.
func (l *Lists) Of(op int32) []int32 { return l.all[l.start[op]:l.start[op+1]] }

// Len returns the numbers of all lists.
func (l *Lists) Len() int { return len(l.all) }

// Link returns the links of a valid problem, which must not change from then on.
func Link(p *Problem) *Links {
	pairs := slices.Clone(p.Before)
	touches := make([][2]int32, 0, len(p.Tensors))
	for i := range p.Tensors {
		t := &p.Tensors[i]
		for _, op := range t.Ops {
			touches = append(touches, [2]int32{op, int32(i)})
			if op != t.Made() {
				pairs = append(pairs, [2]int32{t.Made(), op})
			}
		}
	}
	l := &Links{Problem: p, Touched: newLists(p.Ops(), touches), Succs: newLists(p.Ops(), pairs)}
	for i := range pairs {
		pairs[i][0], pairs[i][1] = pairs[i][1], pairs[i][0]
	}
	l.Preds = newLists(p.Ops(), pairs)
	return l
}

// newLists puts the second of each pair into the list of the first, once.
func newLists(n int, pairs [][2]int32) Lists {
	l := Lists{start: make([]int32, n+1), all: make([]int32, len(pairs))}
	for _, pair := range pairs {
		l.start[pair[0]+1]++
	}
	for i := range n {
		l.start[i+1] += l.start[i]
	}
	at := slices.Clone(l.start[:n])
	for _, pair := range pairs {
		l.all[at[pair[0]]] = pair[1]
		at[pair[0]]++
	}
	kept := int32(0)
	for i := range n {
		list := l.all[l.start[i]:at[i]]
		slices.Sort(list)
		list = slices.Compact(list)
		l.start[i] = kept
		kept += int32(copy(l.all[kept:], list))
	}
	l.start[n] = kept
	l.all = l.all[:kept]
	return l
}

// With returns the links of the same problem in which the first operator of each pair comes before the second, too. These pairs must not make
// a cycle; they may go against the numbers.
func (l *Links) With(pairs [][2]int32) *Links {
	more := *l
	n := l.Problem.Ops()
	succs, preds := l.Succs.pairs(n), l.Preds.pairs(n)
	for _, pair := range pairs {
		succs = append(succs, pair)
		preds = append(preds, [2]int32{pair[1], pair[0]})
	}
	more.Succs, more.Preds = newLists(n, succs), newLists(n, preds)
	return &more
}

func (l *Lists) pairs(n int) [][2]int32 {
	pairs := make([][2]int32, 0, len(l.all))
	for op := range int32(n) {
		for _, other := range l.Of(op) {
			pairs = append(pairs, [2]int32{op, other})
		}
	}
	return pairs
}

// Reversed returns the problem and its links with time turned around: operator i is the operator n-1-i of p. The load of an order is that
// of the same order, reversed, but for places that tensors take over, which the reversed problem does not have.
func (l *Links) Reversed() *Links {
	p, n := l.Problem, int32(l.Problem.Ops())
	r := &Problem{Temp: slices.Clone(p.Temp), Tensors: make([]Tensor, len(p.Tensors))}
	slices.Reverse(r.Temp)
	touches := make([][2]int32, 0, l.Touched.Len())
	for i := range p.Tensors {
		ops := make([]int32, len(p.Tensors[i].Ops))
		for j, op := range p.Tensors[i].Ops {
			ops[len(ops)-1-j] = n - 1 - op
			touches = append(touches, [2]int32{n - 1 - op, int32(i)})
		}
		r.Tensors[i] = Tensor{Bytes: p.Tensors[i].Bytes, Ops: ops}
	}
	return &Links{Problem: r, Preds: l.Succs.reversed(n), Succs: l.Preds.reversed(n), Touched: newLists(int(n), touches)}
}

func (l *Lists) reversed(n int32) Lists {
	pairs := l.pairs(int(n))
	for i := range pairs {
		pairs[i] = [2]int32{n - 1 - pairs[i][0], n - 1 - pairs[i][1]}
	}
	return newLists(int(n), pairs)
}

// Reverse returns an order of a reversed problem as one of the problem.
func Reverse(order []int32) []int32 {
	back := make([]int32, len(order))
	for i, op := range order {
		back[len(order)-1-i] = int32(len(order)) - 1 - op
	}
	return back
}

// Program returns the order of the program: that of the numbers.
func Program(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	return order
}
