package policy

import (
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
	"gm/internal/swap/simulate"
)

// problem is a draft.Problem with what only the policies of this package need.
type problem struct {
	*draft.Problem
	machine *simulate.Machine
	work    workspace
	family  *family // quick's, once it has planned
}

func newProblem(g *swap.Graph, limits swap.Limits) *problem {
	limits.Link = &remembered{limits.Link, map[int64]time.Duration{}, map[int64]time.Duration{}}
	return &problem{Problem: draft.New(g, limits), machine: simulate.New(g, limits.Link)}
}

// remembered is a link whose times are looked up but once for each size: the tensors of a network are of a few sizes.
type remembered struct {
	swap.Copier
	out, in map[int64]time.Duration
}

func (r *remembered) OutTime(bytes int64) time.Duration {
	return lookUp(r.out, bytes, r.Copier.OutTime)
}
func (r *remembered) InTime(bytes int64) time.Duration { return lookUp(r.in, bytes, r.Copier.InTime) }

func lookUp(known map[int64]time.Duration, bytes int64, took func(int64) time.Duration) time.Duration {
	t, ok := known[bytes]
	if !ok {
		t = took(bytes)
		known[bytes] = t
	}
	return t
}
