// Package cyclic makes the plans that blocks.Cyclic follows, from a file of gmplan or from the requests of a running job.
package cyclic

import (
	"fmt"
	"slices"
	"strings"

	"gm/formats/plan"
	"gm/internal/blocks"
	"gm/internal/cuda"
)

// Read returns the cycle of a periodic plan of an iteration (gmplan --iteration auto --periodic), for one device.
func Read(r *plan.Reader, device int32) (*blocks.Cycle, error) {
	m := r.Meta()
	if m.Period == 0 {
		return nil, fmt.Errorf("plan %s has no period: make it with gmplan --iteration auto --periodic", r.Name())
	}
	b := builder{first: m.First, end: m.End, arenas: map[int32]int32{}}
	err := plan.Each(r, func(t *plan.Tensor) error {
		if t.Device == device && t.Pool == 0 && m.First <= t.Alloc && t.Alloc < m.End {
			b.add(t, strings.HasSuffix(r.Strings().Text(t.Arena), plan.Repeated))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	cycle := b.cycle()
	if err := cycle.Check(); err != nil {
		return nil, fmt.Errorf("plan %s (streams must not share memory, see gmplan --streams separate): %w", r.Name(), err)
	}
	return cycle, nil
}

// builder collects the steps of a cycle.
type builder struct {
	first, end int64 // rows of the trace
	steps      []blocks.Step
	allocs     []int64 // by step, rows
	frees      []int64
	arenas     map[int32]int32 // by their code in the plan
	sizes      []int64
}

func (b *builder) add(t *plan.Tensor, repeated bool) {
	s := blocks.Step{Size: t.Size, Stream: cuda.Stream(t.Stream), Arena: blocks.NoArena}
	if repeated {
		arena, ok := b.arenas[t.Arena]
		if !ok {
			arena = int32(len(b.sizes))
			b.arenas[t.Arena] = arena
			b.sizes = append(b.sizes, 0)
		}
		s.Arena, s.Offset = arena, t.Offset
		b.sizes[arena] = max(b.sizes[arena], t.Offset+t.Size)
	}
	b.steps, b.allocs, b.frees = append(b.steps, s), append(b.allocs, t.Alloc), append(b.frees, t.Free)
}

// cycle converts rows to steps.
func (b *builder) cycle() *blocks.Cycle {
	for i := range b.steps {
		free := b.frees[i]
		lasts := -i
		if free > b.end { // in the repetition
			free -= b.end - b.first
			lasts += len(b.steps)
		}
		before, _ := slices.BinarySearch(b.allocs, free)
		b.steps[i].Lasts = int32(lasts + before)
	}
	for i := range b.sizes {
		b.sizes[i] = (b.sizes[i] + granularity - 1) / granularity * granularity
	}
	return &blocks.Cycle{Steps: b.steps, Arenas: b.sizes}
}

const granularity = cuda.Granularity
