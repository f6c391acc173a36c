package dsa

// What tests outside of the package use, as package synth imports it.

// Bilevel returns the solver of two levels with the default solver for both.
func Bilevel() Solver {
	auto := Solvers()[0].Solver
	return bilevel{parts: auto, whole: auto}
}
