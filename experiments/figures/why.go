package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/bench/why"
	"gm/internal/cuda/sim"
	"gm/internal/units"
)

// measureWhy takes apart what each allocator loses on every trace: the parts must add up to the peak that it is replayed to, less what is
// requested then.
func measureWhy(e *experiment) error {
	for _, s := range e.traces {
		programs, err := replay.Open(s.trace)
		if err != nil {
			return err
		}
		for _, p := range programs {
			p.Name = s.name
			if len(programs) > 1 {
				p.Name = fmt.Sprintf("%s[%d]", s.name, p.Device)
			}
			if err := sumParts(e, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func sumParts(e *experiment, p *replay.Program) error {
	ctx, gpu, specs := context.Background(), bench.GPU{Costs: sim.H200()}, bench.AllSpecs()
	accounts, err := why.ExplainAll(ctx, p, specs, gpu, func() {})
	if err != nil {
		return err
	}
	rows, err := bench.CompareOn(ctx, []*replay.Program{p}, specs, gpu, func() {})
	if err != nil {
		return err
	}
	exact := 0
	measured := ""
	for i, a := range accounts {
		sum := a.Requested
		for _, part := range a.Parts {
			sum += part.Bytes
		}
		if sum == rows[i].PeakReserved {
			exact++
		}
		if a.Allocator == "torch" {
			measured = mostOf(a)
		}
	}
	e.add("why "+p.Name, fmt.Sprintf("%d of %d allocators exact; torch: %s", exact, len(specs), measured),
		"parts add up to the peak, to the byte", exact == len(specs))
	return nil
}

// mostOf names the two largest parts of what was lost.
func mostOf(a *why.Account) string {
	parts := slices.Clone(a.Parts)
	slices.SortStableFunc(parts, func(x, y why.Part) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return fmt.Sprintf("%s lost, %s %s, %s %s", units.Bytes(a.Reserved-a.Requested),
		parts[0].Name, units.Bytes(parts[0].Bytes), parts[1].Name, units.Bytes(parts[1].Bytes))
}
