package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"gm/internal/dsa"
	"gm/internal/dsa/canonical"
	"gm/internal/dsa/portfolio"
	"gm/internal/dsa/solvers"
	"gm/internal/models/layouts"
)

// Planted problems are chosen as google/minimalloc's instances seem to be: no heuristic fits them in their capacity, and minimalloc does
// within so many nodes, which take its own program some 3 to 13 s.
const (
	plantedNumber = 500
	plantedNodes  = 1 << 16
	plantedFile   = "experiments/figures/planted.txt"
)

// plantedNames lists the problems that were chosen, each by its kind and its seed; `go run ./experiments/figures choose-planted` chooses. Settings
// of solvers were chosen by problems of seeds from 1000 on, but for the share of time that minimalloc's search has: it was set by
// mutated63, mutated123, heaped63 and heaped95, too.
//
//go:embed planted.txt
var plantedNames string

// planter makes planted problems: "cut12" is [layouts.Cut] of seed 12, "heaped12" [layouts.Heaped], and "mutated12" a mutation of an instance of
// google/minimalloc.
type planter struct{ bases []*layouts.Planted }

// plantedKinds are the kinds, in the order in which problems of the same seed are looked at.
var plantedKinds = [...]string{"cut", "heaped", "mutated"}

// newPlanter lays out the instances that mutations are made of.
func (e *experiment) newPlanter() (*planter, error) {
	instances, err := e.sharedInstances("tail", true)
	if err != nil {
		return nil, err
	}
	p := &planter{}
	for _, in := range instances {
		l, err := canonical.Solver{Nodes: 1 << 20}.Solve(context.Background(), in.problem, dsa.Options{Capacity: layouts.PlantedCapacity})
		if err != nil || l.Peak > layouts.PlantedCapacity {
			return nil, fmt.Errorf("%s: a peak of %d: %w", in.name, l.Peak, err)
		}
		p.bases = append(p.bases, layouts.PlantedOf(in.problem, l.Offsets))
	}
	return p, nil
}

// problem returns a problem by its kind and seed, or nil where it needs instances that are not there.
func (p *planter) problem(kind string, seed int) *dsa.Problem {
	var made *layouts.Planted
	switch n := len(p.bases); {
	case kind == "cut":
		made = layouts.Cut(uint64(seed))
	case kind == "heaped":
		made = layouts.Heaped(uint64(seed))
	case n == 0:
		return nil
	default:
		made = p.bases[seed%n].Mutated(p.bases[(seed/n+seed%n+1)%n], uint64(seed))
	}
	return made.Problem(uint64(seed))
}

// named returns the problem of a name.
func (p *planter) named(name string) (*dsa.Problem, error) {
	for _, kind := range plantedKinds {
		if text, ok := strings.CutPrefix(name, kind); ok {
			seed, err := strconv.Atoi(text)
			return p.problem(kind, seed), err
		}
	}
	return nil, fmt.Errorf("%s: no such kind of problem", name)
}

// choosePlanted writes the names of the first problems that heuristics do not solve and minimalloc does.
func choosePlanted(e *experiment) error {
	p, err := e.newPlanter()
	if err != nil {
		return err
	}
	var names []string
	for seed := 0; len(names) < plantedNumber; seed++ {
		for _, kind := range plantedKinds {
			problem := p.problem(kind, seed)
			if problem == nil {
				return errors.New("there are no instances of minimalloc in GM_SHARED/dsa")
			}
			chosen, err := challenging(problem)
			if err != nil {
				return fmt.Errorf("%s%d: %w", kind, seed, err)
			}
			if chosen && len(names) < plantedNumber {
				names = append(names, kind+strconv.Itoa(seed))
			}
		}
	}
	e.table.Add("problems that were chosen", strconv.Itoa(len(names)), "", "")
	return os.WriteFile(plantedFile, []byte(strings.Join(names, "\n")+"\n"), 0o666)
}

// challenging reports whether none of the heuristics that auto begins with fits a problem in its capacity, and minimalloc does.
func challenging(p *dsa.Problem) (bool, error) {
	o := dsa.Options{Capacity: layouts.PlantedCapacity, Workers: 1}
	heuristics := portfolio.Solver{Members: solvers.Auto().(portfolio.Solver).Members}
	l, err := heuristics.Solve(context.Background(), p, o)
	if err != nil || l.Peak <= o.Capacity {
		return false, err
	}
	l, err = canonical.Solver{Nodes: plantedNodes}.Solve(context.Background(), p, o)
	return l.Peak <= o.Capacity, err
}
