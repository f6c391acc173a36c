package dsa

// What tests outside of the package use, as package synth imports it.

// AutoFor returns the default solver with so much work, with annealing or without.
func AutoFor(work int64, anneals bool) Solver {
	auto := Solvers()[0].Solver.(portfolio)
	auto.work, auto.anneals = work, anneals
	return auto
}

// Bilevel returns the solver of two levels with the default solver for both.
func Bilevel() Solver {
	auto := Solvers()[0].Solver
	return bilevel{parts: auto, whole: auto}
}
