package main

import (
	"fmt"
	"strings"
	"time"

	"gm/internal/dsa"
)

// A layout at the bound is to be found in so much time by two workers: the second is for idealloc's S_1, on which heuristics need hundreds of passes.
const (
	largeTime     = 5 * time.Second
	largeTimeHard = 10 * time.Second
	largeWorkers  = 2
)

// measureLarge lays out the instances that come from models and compilers.
func measureLarge(e *experiment) error {
	instances, err := e.sharedInstances("large", false)
	if err != nil {
		return err
	}
	for _, in := range instances {
		limit := largeTime
		if strings.Contains(in.name, "S_1") {
			limit = largeTimeHard
		}
		l, took, err := fastestFor(2*limit, "auto", in.problem, dsa.Options{Workers: largeWorkers})
		if err != nil {
			return fmt.Errorf("%s: %w", in.name, err)
		}
		measured := fmt.Sprintf("%d buffers, optimal by %s, %.3f s", in.problem.Len(), l.Method, took.Seconds())
		if !l.Optimal() {
			measured = fmt.Sprintf("%d buffers, %.5f of the bound after %.1f s", in.problem.Len(), float64(l.Peak)/float64(l.Bound), took.Seconds())
		}
		e.add("large "+in.name, measured, fmt.Sprintf("the bound, %s", limit), l.Optimal() && took <= limit)
	}
	return nil
}
