package check

import (
	"fmt"
	"reflect"
	"slices"

	"gm/internal/swap"
)

// OrderReport is what the check of an order found.
type OrderReport struct {
	Operators, Tensors int
	Moved              int   // operators, at least, that have to be moved to get from one order to the other
	Before, After      int64 // bytes: the peaks
}

// Order proves that a step is another order of a graph: it has the same operators and tensors, each operator sees the contents of tensors and
// states that it saw in the graph, and nothing is read before it is written. Both are valid graphs.
func Order(ordered, graph *swap.Graph) (OrderReport, error) {
	r := OrderReport{Operators: len(graph.Ops), Tensors: len(graph.Tensors)}
	switch {
	case ordered.Origin == nil && len(graph.Ops) > 0:
		return r, fmt.Errorf("it is not the order of another graph: its operators have no origins")
	case len(ordered.Ops) != len(graph.Ops) || len(ordered.Tensors) != len(graph.Tensors):
		return r, fmt.Errorf("it has %d operators and %d tensors, the graph has %d and %d", len(ordered.Ops), len(ordered.Tensors), len(graph.Ops), len(graph.Tensors))
	}
	places, err := placesOf(ordered.Origin)
	if err != nil {
		return r, err
	}
	for at, from := range ordered.Origin {
		if err := sameOperator(ordered, graph, int32(at), from); err != nil {
			return r, fmt.Errorf("operator %d, which is %d in the graph: %w", at, from, err)
		}
	}
	r.Moved = len(ordered.Origin) - longestRise(ordered.Origin)
	for i := range graph.Tensors {
		if err := sameTensor(&ordered.Tensors[i], &graph.Tensors[i], places); err != nil {
			return r, fmt.Errorf("tensor %d: %w", i, err)
		}
	}
	if err := sameVersions(ordered, graph, places); err != nil {
		return r, err
	}
	r.Before, r.After = peakOf(graph), peakOf(ordered)
	return r, nil
}

// longestRise returns the length of the longest part of a permutation, not necessarily of neighbours, that rises.
func longestRise(all []int32) int {
	var ends []int32 // by length, the least end of a rise of that length
	for _, v := range all {
		at, _ := slices.BinarySearch(ends, v)
		if at == len(ends) {
			ends = append(ends, v)
		} else {
			ends[at] = v
		}
	}
	return len(ends)
}

// placesOf returns the place of each operator of the graph in the order.
func placesOf(origin []int32) ([]int32, error) {
	places := make([]int32, len(origin))
	for i := range places {
		places[i] = -1
	}
	for at, from := range origin {
		if from < 0 || int(from) >= len(origin) || places[from] >= 0 {
			return nil, fmt.Errorf("operator %d has the origin %d, which the graph lacks or another operator has", at, from)
		}
		places[from] = int32(at)
	}
	return places, nil
}

// sameOperator compares operators but for their phases: that of a place is the earliest of the operators from there on.
func sameOperator(ordered, graph *swap.Graph, at, from int32) error {
	a, b := ordered.Ops[at], graph.Ops[from]
	last := int(at) == len(ordered.Ops)-1
	phase := b.Phase
	if !last {
		phase = min(phase, ordered.Ops[at+1].Phase)
	}
	if a.Phase != phase {
		return fmt.Errorf("phase %v, expected %v", a.Phase, phase)
	}
	for _, pair := range [][2][]int32{{a.Reads, b.Reads}, {a.Changes, b.Changes}} {
		if !slices.Equal(stateNames(ordered, pair[0]), stateNames(graph, pair[1])) {
			return fmt.Errorf("it reads or changes other states")
		}
	}
	a.Phase, a.Reads, a.Changes, b.Reads, b.Changes = b.Phase, nil, nil, nil, nil
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("it is %+v, expected %+v", a, b)
	}
	return nil
}

// stateNames returns the names of states, which files may number differently, ascending.
func stateNames(g *swap.Graph, states []int32) []string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = g.States[s]
	}
	slices.Sort(names)
	return names
}

func sameTensor(a, b *swap.Tensor, places []int32) error {
	if a.Made != places[b.Made] {
		return fmt.Errorf("operator %d writes it, expected %d", a.Made, places[b.Made])
	}
	if !slices.Equal(a.Uses, at(b.Uses, places)) {
		return fmt.Errorf("operators %v use it, expected %v", a.Uses, at(b.Uses, places))
	}
	if !slices.Equal(a.Changed, at(b.Changed, places)) {
		return fmt.Errorf("operators %v change it, expected %v", a.Changed, at(b.Changed, places))
	}
	rest, of := *a, *b
	rest.Made, rest.Uses, rest.Changed, of.Made, of.Uses, of.Changed = 0, nil, nil, 0, nil, nil
	if !reflect.DeepEqual(rest, of) {
		return fmt.Errorf("it is %+v, expected %+v", rest, of)
	}
	return nil
}

// at returns the places of operators, ascending.
func at(ops, places []int32) []int32 {
	var to []int32
	for _, op := range ops {
		to = append(to, places[op])
	}
	slices.Sort(to)
	return to
}

// access is an operator that sees a version of a tensor or a state, and the version: how many operators have changed it before.
type access struct{ op, version int32 }

// sameVersions checks that every operator sees the versions that it saw in the graph.
func sameVersions(ordered, graph *swap.Graph, places []int32) error {
	for i := range graph.Tensors {
		a, b := &ordered.Tensors[i], &graph.Tensors[i]
		if err := agree(versions(a.Uses, a.Changed), versions(b.Uses, b.Changed), places); err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
	}
	is, was := stateAccesses(ordered), stateAccesses(graph)
	for name := range was {
		a, b := is[name], was[name]
		if err := agree(versions(a.sees, a.changes), versions(b.sees, b.changes), places); err != nil {
			return fmt.Errorf("state %q: %w", name, err)
		}
	}
	return nil
}

// accesses are the operators that see a state, the changes included, and those that change it, ascending.
type accesses struct{ sees, changes []int32 }

func stateAccesses(g *swap.Graph) map[string]*accesses {
	all := map[string]*accesses{}
	for op := range g.Ops {
		for changes, states := range [][]int32{g.Ops[op].Reads, g.Ops[op].Changes} {
			for _, s := range states {
				a := all[g.States[s]]
				if a == nil {
					a = &accesses{}
					all[g.States[s]] = a
				}
				if n := len(a.sees); n == 0 || a.sees[n-1] != int32(op) {
					a.sees = append(a.sees, int32(op))
				}
				if changes > 0 {
					a.changes = append(a.changes, int32(op))
				}
			}
		}
	}
	return all
}

// versions returns what the operators see.
func versions(sees, changes []int32) []access {
	all := make([]access, len(sees))
	version := int32(0)
	for i, op := range sees {
		all[i] = access{op, version}
		if _, changed := slices.BinarySearch(changes, op); changed {
			version++
		}
	}
	return all
}

// agree returns an error for an operator that sees another version than in the graph.
func agree(is, was []access, places []int32) error {
	seen := map[int32]int32{}
	for _, a := range is {
		seen[a.op] = a.version
	}
	for _, a := range was {
		if now := seen[places[a.op]]; now != a.version {
			return fmt.Errorf("operator %d, which is %d in the graph, sees it after %d changes, expected %d", places[a.op], a.op, now, a.version)
		}
	}
	return nil
}

// peakOf returns the most bytes in use in a step that moves nothing. A tensor that is written over another one, which is used for the last time
// then, takes no memory beside that.
func peakOf(g *swap.Graph) int64 {
	used := g.Plain()
	given := map[int32]bool{}
	for i := range g.Tensors {
		t := &g.Tensors[i]
		for _, over := range t.Over {
			if old := &g.Tensors[over]; old.Last() == t.Made && old.Bytes >= t.Bytes && !given[over] {
				given[over] = true
				used[t.Made] -= t.Bytes
				break
			}
		}
	}
	var peak int64
	for _, bytes := range used {
		peak = max(peak, bytes)
	}
	return peak
}
