package estimate

import (
	"context"

	"gm/internal/bench/replay"
	"gm/internal/dsa/solvers"
)

// quick lists the solvers that plan a stage: fast ones, since a job has as many traces as stages. gmplan may find a lower layout.
func quick() []string { return []string{"skyline-A", "skyline-W", "skyline-TWA"} }

// plan gives a program the lowest layout that quick solvers find.
func plan(ctx context.Context, p *replay.Program) error {
	best := int64(0)
	for _, name := range quick() {
		solver, err := solvers.Lookup(name)
		if err != nil {
			return err
		}
		placements, arenas, err := p.Plan(ctx, solver)
		if err != nil {
			return err
		}
		sum := int64(0)
		for _, size := range arenas {
			sum += size
		}
		if p.Placements == nil || sum < best {
			p.Placements, p.Arenas, best = placements, arenas, sum
		}
	}
	return nil
}
