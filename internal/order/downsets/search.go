// Package downsets finds the best order of some operators by exact search over the sets of them that can have run.
//
// What is in memory between two operators depends on which ones have run, not on their order. So there is one state for each set that
// holds with each operator all that come before it, a down-set. The search goes from the empty set to the whole, the states of the lowest
// peak first. The first time that it takes the whole set, the way there is the best. It keeps to the rule, which loses nothing, that an
// operator that leaves no more in memory than there was, and fits below the peak so far, runs at once. (Ahn et al., Ordering Chaos,
// MLSys 2020, search over down-sets under a budget; the rule is that of pebbling trees.)
package downsets

import (
	"container/heap"
	"context"
	"iter"
	"math/bits"
	"slices"

	"gm/internal/order"
)

// MaxOps is the most operators that can be searched at once.
const MaxOps = 256

// Limits bound a search.
type Limits struct {
	Enough int64 // bytes: no peak below this is looked for
	Below  int64 // bytes: a peak that is not below this is no result
	States int   // sets that are looked at, at most
}

// Result says how a search ended.
type Result int

// The results of a search.
const (
	Found  Result = iota // the order returned is the best, or as good as Enough
	None                 // there is no order with a peak below Below
	GaveUp               // there were more states, or the context ended
)

// Search returns the order of least peak of the operators at places [from, to) of an order, with all others where they are. There are at
// most MaxOps of them.
func Search(ctx context.Context, l *order.Links, whole []int32, from, to int, limits Limits) ([]int32, Result) {
	s := newSearch(l, whole, from, to, limits)
	for steps := 0; len(s.open) > 0; steps++ {
		if len(s.states) > limits.States || steps%256 == 0 && ctx.Err() != nil {
			return nil, GaveUp
		}
		at := heap.Pop(s).(int32)
		if s.states[at].set == s.all {
			return s.path(at), Found
		}
		s.expand(at)
	}
	return nil, None
}

// set is a set of operators, by their places in the window.
type set [MaxOps / 64]uint64

func (s *set) add(i int) { s[i>>6] |= 1 << (i & 63) }

// absent yields the members of all that are not in the set now.
func (s *set) absent(all *set) iter.Seq[int] {
	return func(yield func(int) bool) {
		for word := range s {
			for rest := all[word] &^ s[word]; rest > 0; rest &= rest - 1 {
				if !yield(word<<6 | bits.TrailingZeros64(rest)) {
					return
				}
			}
		}
	}
}

// holds reports whether all of o is in s.
func (s *set) holds(o *set) bool {
	return o[0]&^s[0]|o[1]&^s[1]|o[2]&^s[2]|o[3]&^s[3] == 0
}

// meets reports whether some of o is in s.
func (s *set) meets(o *set) bool {
	return o[0]&s[0]|o[1]&s[1]|o[2]&s[2]|o[3]&s[3] != 0
}

// state is a set that can have run, and the best way to it that is known.
type state struct {
	set    set
	live   int64 // bytes in memory behind it
	peak   int64
	count  int32 // operators
	parent int32 // -1 for the first
	op     int32 // that ran behind the parent, followed by those that run at once
	closed bool
}

type search struct {
	limits  Limits
	names   []int32   // of the operators of the window
	preds   []set     // by operator
	temp    []int64   //
	touched [][]int32 // by operator: tensors
	places  []bool    // by operator: it may write a tensor over another one
	tensors []tensor  //
	all     set
	first   state // before any operator of the window has run
	states  []state
	table   table
	open    []int32 // a heap of states
}

// tensor is one that operators of the window touch.
type tensor struct {
	bytes int64
	ops   set
	early bool    // operators before the window touch it
	late  bool    // operators behind it do
	made  int     // the operator of the window that makes it, -1 for none
	over  []int32 // tensors, of this list
}

// Len implements heap.Interface.
func (s *search) Len() int { return len(s.open) }

// Less implements heap.Interface: the lowest peak first, and of equal ones what is nearest to the end.
func (s *search) Less(i, j int) bool {
	a, b := &s.states[s.open[i]], &s.states[s.open[j]]
	if a.peak != b.peak {
		return a.peak < b.peak
	}
	if a.count != b.count {
		return a.count > b.count
	}
	return a.live < b.live
}

// Swap implements heap.Interface.
func (s *search) Swap(i, j int) { s.open[i], s.open[j] = s.open[j], s.open[i] }

// Push implements heap.Interface.
func (s *search) Push(x any) { s.open = append(s.open, x.(int32)) }

// Pop implements heap.Interface.
func (s *search) Pop() any {
	last := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	return last
}

// expand adds the states one operator behind a state.
func (s *search) expand(at int32) {
	if s.states[at].closed {
		return
	}
	s.states[at].closed = true
	from := s.states[at]
	for op := range from.set.absent(&s.all) {
		if !from.set.holds(&s.preds[op]) {
			continue
		}
		next := from
		next.parent, next.op, next.closed = at, int32(op), false
		s.run(&next, op)
		if next.peak >= s.limits.Below {
			continue
		}
		s.runFree(&next, nil)
		s.reach(next)
	}
}

// reach adds a state, or a better way to it.
func (s *search) reach(next state) {
	at := s.table.find(&next.set, s.states)
	if old := *at; old >= 0 {
		if s.states[old].peak <= next.peak {
			return
		}
		s.states[old].closed = true // the new one takes its place
	}
	*at = int32(len(s.states))
	s.states = append(s.states, next)
	s.table.grow(s.states)
	heap.Push(s, int32(len(s.states)-1))
}

// run runs an operator.
func (s *search) run(st *state, op int) {
	takes, leaves := s.cost(st, op)
	st.peak = max(st.peak, st.live+takes)
	st.live += leaves
	st.set.add(op)
	st.count++
}

// runFree runs all operators that leave no more in memory and fit below the peak, one after the other, and adds them to ran unless that is nil.
func (s *search) runFree(st *state, ran *[]int32) {
	for again := true; again; {
		again = false
		for op := range st.set.absent(&s.all) {
			if !st.set.holds(&s.preds[op]) {
				continue
			}
			takes, leaves := s.cost(st, op)
			if leaves > 0 || st.live+takes > st.peak {
				continue
			}
			s.run(st, op)
			again = true
			if ran != nil {
				*ran = append(*ran, s.names[op])
			}
		}
	}
}

// cost returns the bytes that an operator takes while it runs behind a state, and how many more are in memory then.
func (s *search) cost(st *state, op int) (takes, leaves int64) {
	after := st.set
	after.add(op)
	var made, freed int64
	for _, i := range s.touched[op] {
		t := &s.tensors[i]
		if !t.early && !st.set.meets(&t.ops) {
			made += t.bytes
		}
		if !t.late && after.holds(&t.ops) {
			freed += t.bytes
		}
	}
	return made + s.temp[op] - s.takenOver(&after, op), made - freed
}

// takenOver returns the bytes that an operator writes over what it reads, as [order.Links.TakenOver] does.
func (s *search) takenOver(after *set, op int) int64 {
	if !s.places[op] {
		return 0
	}
	var bytes int64
	var taken [4]int32
	n := 0
	for _, i := range s.touched[op] {
		t := &s.tensors[i]
		if t.made != op || n == len(taken) {
			continue
		}
		for _, over := range t.over {
			old := &s.tensors[over]
			if !old.late && after.holds(&old.ops) && old.bytes >= t.bytes && !slices.Contains(taken[:n], over) {
				taken[n] = over
				n++
				bytes += t.bytes
				break
			}
		}
	}
	return bytes
}

// path returns the operators up to a state, in order.
func (s *search) path(at int32) []int32 {
	var chain []int32
	for ; s.states[at].parent >= 0; at = s.states[at].parent {
		chain = append(chain, at)
	}
	st := s.first
	ran := make([]int32, 0, len(s.names))
	s.runFree(&st, &ran)
	for i := len(chain) - 1; i >= 0; i-- {
		op := int(s.states[chain[i]].op)
		ran = append(ran, s.names[op])
		s.run(&st, op)
		s.runFree(&st, &ran)
	}
	return ran
}
