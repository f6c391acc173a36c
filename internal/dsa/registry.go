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

// Solvers lists the solvers, the default first.
func Solvers() []Entry {
	skyline := func(name string, by key, about string) Entry {
		return Entry{name, about, portfolio{members: []member{{name, skylineBy{by}}}}}
	}
	entries := []Entry{
		{"auto", "all below in order of promise, then random keys, until one is proven optimal", Solver(nil)},
		skyline("skyline", "W", "lowest segment first, longest life first (Chainer)"),
	}
	return entries
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
