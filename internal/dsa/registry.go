package dsa

import (
	"fmt"
	"strings"
)

// Entry is a solver by name.
type Entry struct {
	Name   string
	About  string // one line
	Solver Solver
}

// The bounds of the default solver. They count work, not time, so that a problem gets the same layout on any machine:
// up to some ten seconds on two cores when the bound is never met.
const (
	autoRounds = 4096
	autoWork   = 1 << 29
	autoNodes  = 1 << 18
	autoLives  = 1 << 17 // beyond, skylines get lower in the same time
	mostLives  = 1 << 21 // up to some 500 MB
)

// Solvers lists the solvers, the default first.
func Solvers() []Entry {
	var entries []Entry
	var members []member
	add := func(name, about string, m method) {
		alone := []member{{name, m}}
		members = append(members, alone...)
		entries = append(entries, Entry{name, about, portfolio{members: alone}})
	}
	// In order of promise, but the last, which is fast whatever the problem: on the traces of training at hand the first meets the bound on all but one in twenty.
	add("skyline-A", "lowest segment first, greatest size x life first", skylineBy{"A"})
	add("skyline-S", "greatest size x sections lived in first", skylineBy{"S"})
	add("skyline-W", "longest life first (Chainer's heuristic)", skylineBy{"W"})
	add("skyline-V", "most sections lived in first", skylineBy{"V"})
	add("skyline-TWA", "highest load during the life first, then longest life", skylineBy{"TWA"})
	add("skyline-TAW", "highest load during the life first, then greatest size x life", skylineBy{"TAW"})
	add("skyline-Z", "greatest size first", skylineBy{"Z"})
	add("skyline-TZ", "highest load during the life first, then greatest size", skylineBy{"TZ"})
	add("best-fit", "in order of birth into the smallest gap, as an allocator would", onlineBestFit{})
	few := portfolio{members: members, rounds: huntRounds, work: autoWork / 8, nodes: autoNodes / 8, lives: autoLives}
	repeats := bilevel{parts: few, whole: few}
	auto := portfolio{
		members: members, rounds: autoRounds, repeats: &repeats, general: generalSolver{}, work: autoWork, nodes: autoNodes, lives: autoLives,
		anneals: true,
	}
	exact := portfolio{members: members[:1], work: autoWork, nodes: autoNodes, lives: mostLives}

	add("first-fit", "in order of birth into the lowest gap; quadratic", orderedFit{by: ""})
	add("first-fit-Z", "greatest size first into the lowest gap; quadratic", orderedFit{by: "ZW"})
	add("best-fit-Z", "greatest size first into the smallest gap (XLA, TensorFlow Lite); quadratic", orderedFit{by: "ZW", smallest: true})
	add("first-fit-A", "greatest size x life first into the lowest gap; quadratic", orderedFit{by: "A"})
	add("best-fit-A", "greatest size x life first into the smallest gap; quadratic", orderedFit{by: "A", smallest: true})
	add("first-fit-W", "longest life first into the lowest gap; quadratic", orderedFit{by: "WZ"})
	return append([]Entry{
		{"auto", "all skylines and best-fit, repeated parts once, then an exact search or annealing beside skylines of random keys, until one is proven optimal", auto},
		{"exact", "depth-first search that finds a layout of the least peak and proves that it is, given the time", exact},
		{"bilevel", "what is repeated, layers or iterations, laid out once (MEMO)", repeats},
		{"general", "several orders into the lowest gap, pairs and annealing: what auto does where offsets are given, buffers tied or iterations repeated", generalSolver{}},
		{"anneal", "simulated annealing of the order in which buffers are placed (DSA-SA)", anneal{}},
		{"pairs", "branch and bound on which of two buffers lies below the other; for small problems", pairs{}},
	}, entries...)
}

// Lookup returns the solver of a name.
func Lookup(name string) (Solver, error) {
	var names []string
	for _, e := range Solvers() {
		if e.Name == name {
			return e.Solver, nil
		}
		names = append(names, e.Name)
	}
	return nil, fmt.Errorf("unknown solver %q, expected one of %s", name, strings.Join(names, ", "))
}
