// Package gtbm places what lives during a step as Dymem does: Group Tensors By Mobility (HPDC 2020, section 3.3).
package gtbm

import (
	"context"
	"fmt"
	"slices"

	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/swap"
	"gm/internal/swap/lifetimes"
)

// Group is what tensors have in common that are placed together, each in an arena of its own (section 3.3.2).
type Group int

// The groups.
const (
	Movable   Group = iota // read once: from the low end of the main space
	Temporary              // read more often, or waiting to be joined: from its high end
	Reclaimed              // of layers that are never offloaded: in the incremental space
	Groups
)

func (g Group) String() string { return [...]string{"movable", "temporary", "reclaimed"}[g] }

// GroupOf is algorithm 3 as it seems meant: in the backward pass what waited for a join is read at once. What is beside the tensors is movable
// when it is in use in two operators at most, as the gradient between two layers is, temporary when longer, and reclaimed when it is there
// before the step.
func GroupOf(g *swap.Graph, s *lifetimes.Stay) Group {
	if s.Tensor < 0 {
		return groupBeside(s)
	}
	tensor := &g.Tensors[s.Tensor]
	switch g.Ops[tensor.Made].Type {
	case swap.Linear, swap.Softmax, swap.Dropout:
		return Reclaimed
	}
	readers, waits := 0, false
	for _, op := range tensor.Uses {
		if g.Ops[op].Phase == swap.Forward {
			readers++
			waits = waits || g.Ops[op].Type == swap.Join && op > tensor.Made+1
		}
	}
	if readers > 1 || waits && g.Ops[s.First].Phase == swap.Forward {
		return Temporary
	}
	return Movable
}

func groupBeside(s *lifetimes.Stay) Group {
	switch {
	case s.First < 0:
		return Reclaimed
	case s.Until > s.First+2:
		return Temporary
	}
	return Movable
}

// Pool is a layout in two address ranges, the main space and the incremental one (section 3.3.3).
type Pool struct {
	Group  []Group       // by stay
	Offset []int64       // by stay: bytes from the start of its space
	Ends   [Groups]int64 // bytes: the most that each group reaches from its end

	Main, Incremental         int64 // bytes of the spaces
	MainLoad, IncrementalLoad int64 // bytes that live at once in each; no layout takes less
}

// Place lays out a step of g. Sizes and offsets are multiples of align, in bytes. Each group is served best fit, in the order of the step.
//
// The main space is as large as section 3.3.3 finds in a first step, in a space that is large enough for all: that, less the least gap that
// was ever left between the groups at its ends, and beta bytes. There more is added where another step fails: see [Trials]. Steps of
// one schedule are alike and fit, whatever beta is.
func Place(ctx context.Context, g *swap.Graph, step *lifetimes.Step, align, beta int64) (*Pool, error) {
	if err := step.Problem(align).Validate(); err != nil {
		return nil, err
	}
	p := &Pool{Group: make([]Group, len(step.Stays)), Offset: make([]int64, len(step.Stays))}
	for i := range step.Stays {
		p.Group[i] = GroupOf(g, &step.Stays[i])
	}
	for group := range Groups {
		if err := p.fill(ctx, step, group, align); err != nil {
			return nil, fmt.Errorf("place what is %v: %w", group, err)
		}
	}
	p.Main, p.Incremental = p.squeezed(step, align)+rounded(beta, align), p.Ends[Reclaimed]
	for i, group := range p.Group {
		if group == Temporary {
			p.Offset[i] = p.Main - p.Offset[i] - rounded(step.Stays[i].Bytes, align)
		}
	}
	main, _ := p.part(step, Movable, Temporary)
	incremental, _ := p.part(step, Reclaimed)
	p.MainLoad, p.IncrementalLoad = main.Load(align), incremental.Load(align)
	return p, nil
}

// part returns the stays of some groups, and where they are among all.
func (p *Pool) part(step *lifetimes.Step, groups ...Group) (part *lifetimes.Step, members []int) {
	part = &lifetimes.Step{Events: step.Events}
	for i, s := range step.Stays {
		if slices.Contains(groups, p.Group[i]) {
			members, part.Stays = append(members, i), append(part.Stays, s)
		}
	}
	return part, members
}

// fill lays out a group alone, from the start of an address range.
func (p *Pool) fill(ctx context.Context, step *lifetimes.Step, group Group, align int64) error {
	solver, err := solvers.Lookup("best-fit")
	if err != nil {
		return err
	}
	part, members := p.part(step, group)
	l, err := solver.Solve(ctx, part.Problem(align), dsa.Options{})
	if err != nil {
		return err
	}
	for k, i := range members {
		p.Offset[i] = l.Offsets[k]
	}
	p.Ends[group] = l.Peak
	return nil
}

func rounded(bytes, align int64) int64 { return (bytes + align - 1) / align * align }
