package policy

import (
	"gm/internal/swap"
	"gm/internal/swap/draft"
	"gm/internal/swap/simulate"
)

// problem is a draft.Problem with what only the policies of this package need.
type problem struct {
	*draft.Problem
	machine *simulate.Machine
	work    workspace
	family  *family // auto's, once it has planned
}

func newProblem(g *swap.Graph, limits swap.Limits) *problem {
	return &problem{Problem: draft.New(g, limits), machine: simulate.New(g, limits.Link)}
}
