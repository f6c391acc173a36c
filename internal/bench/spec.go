// Package bench compares allocators on programs.
package bench

import (
	"context"
	"fmt"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/plan/cyclic"
)

// Spec is an allocator with its settings, for any program.
type Spec struct{ blocks.Spec }

// Names returns a line for each allocator: its name and what it does.
func Names() []string {
	var lines []string
	for _, e := range blocks.Registry() {
		lines = append(lines, fmt.Sprintf("%-12s %s", e.Name, e.About))
	}
	return lines
}

// AllSpecs returns every allocator with its default settings.
func AllSpecs() []Spec { return specs(blocks.AllSpecs()) }

// ParseSpecs is [blocks.ParseSpecs].
func ParseSpecs(text string) ([]Spec, error) {
	parsed, err := blocks.ParseSpecs(text)
	return specs(parsed), err
}

func specs(of []blocks.Spec) []Spec {
	all := make([]Spec, len(of))
	for i, s := range of {
		all[i] = Spec{s}
	}
	return all
}

// Make creates the allocator for a program on a device. A *blocks.OOMError means that the arenas of a plan do not fit.
func (s Spec) Make(ctx context.Context, p *replay.Program, dev cuda.Device) (blocks.Allocator, error) {
	p, err := s.Prepare(ctx, p)
	if err != nil {
		return nil, err
	}
	return s.New(dev, blocks.Job{
		Align: p.Align, AllocConf: p.AllocConf, Placements: p.Placements, Arenas: p.Arenas,
		Plan: func(c *blocks.Cyclic, iteration []blocks.Request) { adopt(ctx, c, iteration) },
	})
}

// adopt makes c follow a plan of an iteration, as gmstitch run --auto does, but from the next request on. An iteration that cannot be
// planned is not followed.
func adopt(ctx context.Context, c *blocks.Cyclic, iteration []blocks.Request) {
	if cycle, err := cyclic.Solve(ctx, iteration, solvers.Auto(), dsa.Options{}); err == nil {
		c.Adopt(cycle)
	}
}

// Prepare returns a program for which the allocator can be created many times: p, or a copy of it with the plan, which would otherwise be
// solved each time.
func (s Spec) Prepare(ctx context.Context, p *replay.Program) (*replay.Program, error) {
	if !s.Planned || p.Placements != nil {
		return p, nil
	}
	planned := *p
	var err error
	if planned.Placements, planned.Arenas, err = p.Plan(ctx, solvers.Auto()); err != nil {
		return nil, fmt.Errorf("solve a plan: %w", err)
	}
	return &planned, nil
}
