package cyclic

import (
	"context"
	"fmt"
	"slices"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/dsa"
)

// align is the alignment of offsets, in bytes: PyTorch's.
const align = 512

// Solve lays out the requests of one iteration for endless repetition, in one arena per stream. The solver minimizes each arena until ctx
// is done. Requests of no bytes, and those whose memory lasts longer than an iteration, are not planned.
func Solve(ctx context.Context, requests []blocks.Request, solver dsa.Solver, o dsa.Options) (*blocks.Cycle, error) {
	cycle := &blocks.Cycle{Steps: make([]blocks.Step, len(requests)), Proven: true}
	byStream := map[cuda.Stream][]int32{}
	for i, r := range requests {
		cycle.Steps[i] = blocks.Step{Size: r.Size, Stream: r.Stream, Arena: blocks.NoArena, Lasts: r.Lasts}
		if r.Size > 0 && r.Lasts > 0 && int(r.Lasts) <= len(requests) {
			byStream[r.Stream] = append(byStream[r.Stream], int32(i))
		}
	}
	for _, stream := range sorted(byStream) {
		if err := place(ctx, cycle, byStream[stream], solver, o); err != nil {
			return nil, fmt.Errorf("lay out stream %d: %w", stream, err)
		}
	}
	return cycle, nil
}

func sorted(byStream map[cuda.Stream][]int32) []cuda.Stream {
	var all []cuda.Stream
	for s := range byStream {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

// place lays out some steps of a cycle in a new arena.
func place(ctx context.Context, cycle *blocks.Cycle, members []int32, solver dsa.Solver, o dsa.Options) error {
	p := &dsa.Problem{Align: align, Period: int64(len(cycle.Steps))}
	for _, i := range members {
		s := &cycle.Steps[i]
		p.Start = append(p.Start, int64(i))
		p.End = append(p.End, int64(i)+int64(s.Lasts))
		p.Size = append(p.Size, s.Size)
	}
	layout, err := solver.Solve(ctx, p, o)
	if err != nil {
		return err
	}
	if err := dsa.Check(p, layout); err != nil {
		return err
	}
	arena := int32(len(cycle.Arenas))
	cycle.Arenas = append(cycle.Arenas, (layout.Peak+granularity-1)/granularity*granularity)
	for k, i := range members {
		cycle.Steps[i].Arena, cycle.Steps[i].Offset = arena, layout.Offsets[k]
	}
	return nil
}
