package replay

import (
	"context"

	"gm/internal/blocks"
	"gm/internal/dsa"
)

// Plan solves the layout of the program's tensors. It returns a placement for each, in the order of their allocs, and the sizes of the
// arenas in bytes: one for each pool.
func (p *Program) Plan(ctx context.Context, solver dsa.Solver) ([]blocks.Placement, []int64, error) {
	ends := p.ends()
	placements := make([]blocks.Placement, len(p.Sizes))
	arenaOf := map[blocks.Pool]int32{}
	var members [][]int32
	var problems []*dsa.Problem
	for step, kind := range p.Kinds {
		if kind != Alloc {
			continue
		}
		t := p.Tensors[step]
		arena, ok := arenaOf[p.Pools[t]]
		if !ok {
			arena = int32(len(problems))
			arenaOf[p.Pools[t]] = arena
			problems = append(problems, &dsa.Problem{Align: p.Align})
			members = append(members, nil)
		}
		q := problems[arena]
		q.Start, q.End, q.Size = append(q.Start, int64(step)), append(q.End, ends[t]), append(q.Size, p.Sizes[t])
		members[arena] = append(members[arena], t)
		placements[t] = blocks.Placement{Size: p.Sizes[t], Arena: arena}
	}
	arenas := make([]int64, len(problems))
	for i, q := range problems {
		layout, err := solver.Solve(ctx, q, dsa.Options{})
		if err != nil {
			return nil, nil, err
		}
		arenas[i] = layout.Peak
		for k, t := range members[i] {
			placements[t].Offset = layout.Offsets[k]
		}
	}
	return placements, arenas, nil
}

// ends returns, for each tensor, the step at which its memory can be reused, or the number of steps if there is none.
func (p *Program) ends() []int64 {
	ends := make([]int64, len(p.Sizes))
	for t := range ends {
		ends[t] = int64(p.Steps())
	}
	for step, kind := range p.Kinds {
		if kind == Free || kind == Complete {
			ends[p.Tensors[step]] = int64(step)
		}
	}
	return ends
}
