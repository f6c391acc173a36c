package policy

import (
	"gm/internal/swap"
	"gm/internal/swap/draft"
	"gm/internal/swap/simulate"
)

// problem is what schedules are made of, with what only the policies of this package ask of it.
type problem struct {
	*draft.Problem
	machine *simulate.Machine
	work    workspace
	family  *family // auto's, if it was asked
}

func newProblem(g *swap.Graph, limits swap.Limits) *problem {
	return &problem{Problem: draft.New(g, limits), machine: simulate.New(g, limits.Link)}
}
