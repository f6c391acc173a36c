package main

import (
	"fmt"
	"time"

	"gm/internal/dsa"
	"gm/internal/models/layouts"
)

// measureTails lays out buffers of which a few live a thousand times as long as most, beside heuristics that take one order.
func measureTails(e *experiment) error {
	const limit = 5 * time.Second
	for _, n := range []int{5_000, 10_000, 20_000} {
		p := layouts.HeavyTailed(n, 1)
		excess := func(solver string) (float64, error) {
			l, _, err := solveFor(limit, solver, p, dsa.Options{})
			if err != nil {
				return 0, fmt.Errorf("%s, %d buffers: %w", solver, n, err)
			}
			return 100 * (float64(l.Peak)/float64(l.Bound) - 1), nil
		}
		auto, err := excess("auto")
		if err != nil {
			return err
		}
		least, name := 0.0, ""
		for _, solver := range []string{"skyline-A", "skyline-TWA", "first-fit-Z", "first-fit-A", "first-fit-W", "best-fit-Z"} {
			alone, err := excess(solver)
			if err != nil {
				return err
			}
			if name == "" || alone < least {
				least, name = alone, solver
			}
		}
		e.add(fmt.Sprintf("tails %d buffers", n), fmt.Sprintf("%.2f %% above the load", auto), fmt.Sprintf("less than %s: %.2f %%", name, least), auto < least)
	}
	return nil
}
