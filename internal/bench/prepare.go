package bench

import (
	"context"
	"fmt"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/dsa/solvers"
)

// Prepare returns a program that the allocator can be made for many times over: p, or a copy of it that has the plan that would
// otherwise be solved each time.
func (s Spec) Prepare(ctx context.Context, p *replay.Program) (*replay.Program, error) {
	if s.name != "planned" || p.Placements != nil {
		return p, nil
	}
	placements, arenas, err := solve(ctx, p)
	if err != nil {
		return nil, err
	}
	planned := *p
	planned.Placements, planned.Arenas = placements, arenas
	return &planned, nil
}

// solve lays out the tensors of a program.
func solve(ctx context.Context, p *replay.Program) ([]blocks.Placement, []int64, error) {
	placements, arenas, err := p.Plan(ctx, solvers.Auto())
	if err != nil {
		return nil, nil, fmt.Errorf("solve a plan: %w", err)
	}
	return placements, arenas, nil
}
