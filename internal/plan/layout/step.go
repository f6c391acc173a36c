package layout

import (
	"gm/formats/column"
	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/swap/gtbm"
	"gm/internal/swap/lifetimes"
	"gm/internal/swap/store"
)

// OfStep returns the tensors that live during a step of a graph. Their rows are the events of the step. Their times, from the beginning of
// the step, assume operators that never wait.
func OfStep(g *store.Graph, step *lifetimes.Step) *Tensors {
	t := &Tensors{
		Pools: column.NewStrings(), Tags: column.NewStrings(), Rows: step.Events, Meta: trace.Meta{Source: g.Name, Devices: []string{g.Device}, Capacity: g.Meta.Capacity},
		Digest: g.Digest, recorded: &recorded{}, rowsOf: plan.Step,
	}
	begins := make([]int64, len(g.Ops)+1) // the beginning of each operator, and the end of the last
	for i := range g.Ops {
		begins[i+1] = begins[i] + g.Ops[i].Duration.Nanoseconds()
	}
	none, untagged := t.Pools.Code(""), t.Tags.Code("")
	for i := range step.Stays {
		s := &step.Stays[i]
		t.ID, t.Size = append(t.ID, plan.StepID(int64(i+1), s.Tensor)), append(t.Size, s.Bytes)
		t.Alloc, t.Free = append(t.Alloc, s.From), append(t.Free, s.End)
		t.AllocNS, t.FreeNS = append(t.AllocNS, begins[max(s.First, 0)]), append(t.FreeNS, begins[s.Until])
		t.Device, t.Stream, t.Pool, t.Tag = append(t.Device, 0), append(t.Stream, 0), append(t.Pool, none), append(t.Tag, untagged)
	}
	return t
}

// The arenas of a plan by mobility.
const (
	mainSpace = iota
	incrementalSpace
)

// Grouped returns the plan of a step that package gtbm has placed, in multiples of align, in bytes.
func Grouped(t *Tensors, pool *gtbm.Pool, align int64) *Plan {
	const solver = "gtbm"
	p := &Plan{Tensors: t, Offset: pool.Offset, Arenas: []Arena{
		mainSpace:        {Name: "d0.main", LowerBound: pool.MainLoad, Method: solver},
		incrementalSpace: {Name: "d0.incremental", LowerBound: pool.IncrementalLoad, Method: solver},
	}}
	for i, group := range pool.Group {
		at := int32(mainSpace)
		if group == gtbm.Reclaimed {
			at = incrementalSpace
		}
		p.Member, p.Arena = append(p.Member, int32(i)), append(p.Arena, at)
		a := &p.Arenas[at]
		a.Tensors++
		a.Peak = max(a.Peak, pool.Offset[i]+(t.Size[i]+align-1)/align*align)
	}
	p.describe(&Options{Solver: solver, Align: align})
	return p
}
