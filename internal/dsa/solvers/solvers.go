// Package solvers lists all solvers of package dsa by name.
//
// To add a solver, implement dsa.Solver in a package of its own and add a line to All. A heuristic is simpler: implement
// heuristic.Method and add a line with alone.
package solvers

import (
	"fmt"
	"slices"
	"strings"

	"gm/internal/dsa"
	"gm/internal/dsa/anneal"
	"gm/internal/dsa/bilevel"
	"gm/internal/dsa/canonical"
	"gm/internal/dsa/general"
	"gm/internal/dsa/heuristic"
	"gm/internal/dsa/pairs"
	"gm/internal/dsa/portfolio"
)

// Entry is a solver by name.
type Entry struct {
	Name   string
	About  string // one line
	Solver dsa.Solver
}

// The limits of the default solver. They count work, not time, so that a problem gets the same layout on any machine:
// up to some twenty seconds on two cores when the bound is never met.
const (
	autoRounds = 4096
	autoWork   = 1 << 29
	autoNodes  = 1 << 18
	autoLives  = 1 << 17 // beyond, skylines get lower in the same time
	mostLives  = 1 << 21 // up to some 500 MB
)

// All lists the solvers, the default first.
func All() []Entry {
	// In order of promise, except for the last, which is fast on any problem. On the traces of training at hand the first meets the bound on
	// all but one in twenty.
	raced := []Entry{
		alone("skyline-A", "lowest segment first, greatest size x life first", heuristic.SkylineBy("A")),
		alone("skyline-S", "greatest size x sections lived in first", heuristic.SkylineBy("S")),
		alone("skyline-W", "longest life first (Chainer's heuristic)", heuristic.SkylineBy("W")),
		alone("skyline-V", "most sections lived in first", heuristic.SkylineBy("V")),
		alone("skyline-TWA", "highest load during the life first, then longest life", heuristic.SkylineBy("TWA")),
		alone("skyline-TAW", "highest load during the life first, then greatest size x life", heuristic.SkylineBy("TAW")),
		alone("skyline-Z", "greatest size first", heuristic.SkylineBy("Z")),
		alone("skyline-TZ", "highest load during the life first, then greatest size", heuristic.SkylineBy("TZ")),
		alone("best-fit", "in order of birth into the smallest gap, as an allocator would", heuristic.BestFit{}),
	}
	var members []portfolio.Member
	for _, e := range raced {
		members = append(members, e.Solver.(portfolio.Solver).Members...)
	}
	few := portfolio.Solver{Members: members, Rounds: portfolio.FirstRounds, Work: autoWork / 8, Nodes: autoNodes / 8, Lives: autoLives}
	repeats := bilevel.Solver{Parts: few, Whole: few}
	auto := portfolio.Solver{
		Members: members, Rounds: autoRounds, Repeats: &repeats, General: general.Solver{}, Work: autoWork, Nodes: autoNodes, Lives: autoLives,
		Anneals: true,
	}
	exact := portfolio.Solver{Members: members[:1], Work: autoWork, Nodes: autoNodes, Lives: mostLives}
	memo := bilevel.Solver{Parts: exact, Whole: exact, Published: true}
	return slices.Concat([]Entry{
		{"auto", "all skylines and best-fit, repeated parts once, then an exact search or annealing beside skylines of random keys, until one is proven optimal", auto},
		{"exact", "depth-first search that finds a layout of the least peak and proves that it is, given the time", exact},
		{"bilevel", "what is repeated, layers or iterations, laid out once; a box that would raise the load is taken apart", repeats},
		{"memo", "MEMO's two levels as published: one box for each pass of a layer, whatever it costs, and exact search on both; for comparison", memo},
		{"general", "several orders into the lowest gap, pairs and annealing: what auto does where offsets are given, buffers tied or iterations repeated", general.Solver{}},
		{"anneal", "simulated annealing of the order in which buffers are placed (DSA-SA)", anneal.Solver{}},
		{"pairs", "branch and bound on which of two buffers lies below the other; for small problems", pairs.Solver{}},
		{"minimalloc", "depth-first search by offset, in three orders (google/minimalloc); for comparison", canonical.Solver{Nodes: autoNodes}},
	}, raced, []Entry{
		alone("first-fit", "in order of birth into the lowest gap; quadratic", heuristic.OrderedFit{By: ""}),
		alone("first-fit-Z", "greatest size first into the lowest gap; quadratic", heuristic.OrderedFit{By: "ZW"}),
		alone("best-fit-Z", "greatest size first into the smallest gap (XLA, TensorFlow Lite); quadratic", heuristic.OrderedFit{By: "ZW", Smallest: true}),
		alone("first-fit-A", "greatest size x life first into the lowest gap; quadratic", heuristic.OrderedFit{By: "A"}),
		alone("best-fit-A", "greatest size x life first into the smallest gap; quadratic", heuristic.OrderedFit{By: "A", Smallest: true}),
		alone("first-fit-W", "longest life first into the lowest gap; quadratic", heuristic.OrderedFit{By: "WZ"}),
	})
}

// alone returns a heuristic as a solver.
func alone(name, about string, m heuristic.Method) Entry {
	return Entry{name, about, portfolio.Solver{Members: []portfolio.Member{{Name: name, Method: m}}}}
}

// Auto returns the default solver.
func Auto() dsa.Solver { return All()[0].Solver }

// Lookup returns the solver of a name.
func Lookup(name string) (dsa.Solver, error) {
	all := All()
	names := make([]string, len(all))
	for i, e := range all {
		if names[i] = e.Name; e.Name == name {
			return e.Solver, nil
		}
	}
	return nil, fmt.Errorf("unknown solver %q, expected one of %s", name, strings.Join(names, ", "))
}
