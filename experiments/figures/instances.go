package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/instance"
	"gm/internal/dsa/solvers"
)

// sharedInstance is an instance of other projects, which is not bundled.
type sharedInstance struct {
	name    string
	problem *dsa.Problem
}

// minimallocPrefix begins the names of google/minimalloc's instances.
const minimallocPrefix = "minimalloc-"

// sharedInstances reads the instances in the folder dsa of GM_SHARED: those of google/minimalloc, or else all others. Where there are none,
// the table gets a row that says so.
func (e *experiment) sharedInstances(figure string, minimalloc bool) ([]sharedInstance, error) {
	var found []sharedInstance
	for _, pattern := range []string{"*.csv", "*.csv.gz"} {
		files, err := filepath.Glob(filepath.Join(os.Getenv("GM_SHARED"), "dsa", pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".gz"), ".csv")
			if strings.HasPrefix(name, minimallocPrefix) != minimalloc {
				continue
			}
			in, err := instance.Open(file, instance.Options{})
			if err != nil {
				return nil, err
			}
			if len(in.Arenas) != 1 {
				return nil, fmt.Errorf("%s: %d arenas, expected one", file, len(in.Arenas))
			}
			found = append(found, sharedInstance{name, &in.Arenas[0].Problem})
		}
	}
	if len(found) == 0 {
		e.table.Add(figure, "no such instances in GM_SHARED/dsa", "", "not measured")
	}
	return found, nil
}

// solveFor runs a solver for so long at most and checks what it finds.
func solveFor(limit time.Duration, solver string, p *dsa.Problem, o dsa.Options) (l dsa.Layout, took time.Duration, err error) {
	s, err := solvers.Lookup(solver)
	if err != nil {
		return l, 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	start := time.Now()
	if l, err = s.Solve(ctx, p, o); err != nil {
		return l, 0, err
	}
	took = time.Since(start)
	return l, took, dsa.Check(p, l)
}

// fastestFor is [solveFor], several times: the shortest time counts.
func fastestFor(limit time.Duration, solver string, p *dsa.Problem, o dsa.Options) (dsa.Layout, time.Duration, error) {
	var best dsa.Layout
	least := time.Duration(math.MaxInt64)
	for range tries {
		l, took, err := solveFor(limit, solver, p, o)
		if err != nil {
			return l, 0, err
		}
		if took < least {
			best, least = l, took
		}
	}
	return best, least, nil
}
