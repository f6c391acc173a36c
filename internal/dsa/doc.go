// Package dsa states the problem of dynamic storage allocation, offline: given buffers whose lives and sizes are known, find an
// offset for each in one address range such that no two buffers that live at the same time overlap, and the highest end,
// the peak, is low.
//
// A [Problem] lists the buffers, a [Layout] holds the offsets, and [Check] verifies a layout without sharing code with any solver.
// This package does not link a solver: programs that need one import package solvers, whose Lookup returns a [Solver] by name.
//
// The load at a moment is the sum of the sizes of the buffers that live then. The greatest load is a lower bound for any layout. On most
// traces of training a layout meets it, and is then proven optimal.
//
// Solvers are deterministic: the same problem and seed give the same layout on any number of workers, unless a deadline stops the search.
//
// # Files
//
//	problem.go       Problem, Layout, Options, Solver
//	validate.go      Problem.Validate: what makes a problem invalid
//	groups.go        Groups: tied buffers as rigid groups
//	check.go         Check: whether a layout is valid, and its peak correct
//	tied_overlap.go  Problem.TiedOverlap: tied buffers that overlap although no tie says that they share an address
//
// # Packages below
//
// Imports go in one direction, from the bottom of this list to its top:
//
//	residue     numbers that leave a given remainder: alignments, and distances between aligned buffers
//	crew        goroutines that work together; a panic in one reaches the caller
//	sections    a plain problem with its time cut into sections, and the ranking of its buffers by keys
//	skyline     the heuristic that fills the lowest segment of the upper contour
//	gapfit      the heuristics that put each buffer in a gap: in order of birth, or in the order of a key
//	heuristic   the heuristics behind one interface, and the memory that a worker reuses
//	exact       depth-first search that is complete: whether buffers fit in a height
//	repeats     parts of a sequence that occur again
//	bilevel     solver: repeated parts are laid out once
//	rigid       a problem of any kind as rigid items of rectangles, and the placement of items one after another
//	orders      the search for a good order of the items
//	anneal      solver: simulated annealing of that order
//	pairs       solver: branch and bound on which of two rectangles is above the other
//	general     solver: orders, pairs and annealing together, for a problem of any kind
//	portfolio   solver: races of heuristics, then exact search with restarts, or annealing
//	solvers     all solvers by name
//
// Package instance reads and writes problems as CSV, lp writes them as integer programs, and dsatest makes random ones for tests.
package dsa
