package policy

import (
	"gm/internal/swap"
	"gm/internal/swap/remat"
)

// planRemat recomputes, and copies nothing.
func planRemat(p *problem) ([]swap.Action, error) { return remat.Plan(p.Problem) }

// planSketch does so without searching for long.
func planSketch(p *problem) ([]swap.Action, error) { return remat.Sketch(p.Problem) }
