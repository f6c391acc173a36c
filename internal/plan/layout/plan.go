package layout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gm/formats/column"
	"gm/formats/plan"
	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
)

// Options control what is planned, and how.
type Options struct {
	Solver  string // a name in solvers.All; empty for the default
	Search  Search // nil to run the solver until it ends
	Streams Streams
	Align   int64   // bytes; 0 for the alignment in the trace, or 512 if it has none
	Window  *Window // nil for the whole trace

	// Periodic plans the window for endless repetition: a tensor that is freed in the next repetition is part of it.
	Periodic bool
}

// Search finds a layout for each task, in their order.
type Search func(ctx context.Context, s dsa.Solver, tasks []Task) ([]dsa.Layout, error)

// Task is an arena to lay out.
type Task struct {
	Arena   string
	Problem *dsa.Problem
}

// defaultAlign is the multiple to which PyTorch rounds requests, in bytes.
const defaultAlign = 512

// Plan is a layout of the tensors of a trace, or of those that live in a window of it.
type Plan struct {
	Meta    plan.Meta
	Arenas  []Arena // in the order of their first tensors
	Tensors *Tensors
	Member  []int32 // the tensors of the plan, as ascending indices of Tensors
	Arena   []int32 // of each member, an index of Arenas
	Offset  []int64 // of each member, in its arena, in bytes
}

// Solve plans the tensors. When ctx is done, it takes the best layout that the solver has found, if there is one.
func Solve(ctx context.Context, t *Tensors, o Options) (*Plan, error) {
	if o.Align == 0 {
		o.Align = t.Meta.Alignment
	}
	if o.Align == 0 {
		o.Align = defaultAlign
	}
	if o.Align < 0 {
		return nil, fmt.Errorf("alignment of %d bytes, expected at least 1", o.Align)
	}
	if o.Periodic && o.Window == nil {
		return nil, errors.New("no window to repeat")
	}
	if o.Solver == "" {
		o.Solver = solvers.All()[0].Name
	}
	solver, err := solvers.Lookup(o.Solver)
	if err != nil {
		return nil, err
	}
	if o.Search == nil {
		o.Search = untilEnd
	}
	c := newCycle(t, &o)
	p := divide(t, &o, c)
	start := time.Now()
	layouts, err := o.Search(ctx, solver, p.tasks())
	if err != nil {
		return nil, err
	}
	for i := range p.Arenas {
		p.place(&p.Arenas[i], &layouts[i])
	}
	p.inherit(c)
	p.describe(&o)
	p.Meta.SolveNS = time.Since(start).Nanoseconds()
	return p, nil
}

// untilEnd is the default search.
func untilEnd(ctx context.Context, s dsa.Solver, tasks []Task) ([]dsa.Layout, error) {
	layouts := make([]dsa.Layout, len(tasks))
	for i, task := range tasks {
		var err error
		if layouts[i], err = s.Solve(ctx, task.Problem, dsa.Options{}); err != nil {
			return nil, fmt.Errorf("arena %s: %w", task.Arena, err)
		}
	}
	return layouts, nil
}

// divide assigns the tensors to arenas. The cycle is nil unless the plan is periodic.
func divide(t *Tensors, o *Options, c *cycle) *Plan {
	p := &Plan{Tensors: t}
	arenas := map[arenaKey]int32{}
	for i := range t.ID {
		if !o.Window.holds(t, i) {
			continue
		}
		key, inherits := o.key(t, i), false
		if c != nil {
			if _, inherits = c.heirs[i]; inherits || c.repeats(i) {
				key.part = inside
			}
		}
		at, known := arenas[key]
		if !known {
			at = int32(len(p.Arenas))
			arenas[key] = at
			a := Arena{Name: key.name(o, t.Pools.Text), Device: key.device}
			a.problem.Align = o.Align
			p.Arenas = append(p.Arenas, a)
		}
		a := &p.Arenas[at]
		a.Tensors++
		if !inherits {
			a.add(t, i, int32(len(p.Member)))
			if key.part == inside {
				a.repeat(c, i)
			}
		}
		p.Member, p.Arena = append(p.Member, int32(i)), append(p.Arena, at)
	}
	p.Offset = make([]int64, len(p.Member))
	return p
}

// add adds tensor i, the given member of the plan, to the problem.
func (a *Arena) add(t *Tensors, i int, member int32) {
	a.members = append(a.members, member)
	a.problem.Start = append(a.problem.Start, t.position(t.Alloc[i]))
	a.problem.End = append(a.problem.End, t.position(t.Free[i]))
	a.problem.Size = append(a.problem.Size, t.Size[i])
}

// repeat extends the life of tensor i, the last one added, into the next repetition. While no tensor lives on, the problem is plain.
func (a *Arena) repeat(c *cycle, i int) {
	if c != nil && c.crosses(i) {
		a.problem.End[len(a.problem.End)-1] = c.end(i)
		a.problem.Period = c.period
	}
}

func (p *Plan) tasks() []Task {
	tasks := make([]Task, len(p.Arenas))
	for i := range p.Arenas {
		tasks[i] = Task{p.Arenas[i].Name, &p.Arenas[i].problem}
	}
	return tasks
}

// place applies the layout of an arena and drops its problem.
func (p *Plan) place(a *Arena, l *dsa.Layout) {
	for k, member := range a.members {
		p.Offset[member] = l.Offsets[k]
	}
	a.Peak, a.LowerBound, a.Method = l.Peak, l.Bound, l.Method
	a.members, a.problem = nil, dsa.Problem{}
}

// inherit gives tensors from the previous repetition the places of their heirs.
func (p *Plan) inherit(c *cycle) {
	if c == nil {
		return
	}
	for old, heir := range c.heirs {
		from, _ := slices.BinarySearch(p.Member, int32(heir))
		to, _ := slices.BinarySearch(p.Member, int32(old))
		p.Offset[to] = p.Offset[from]
	}
}

// describe sets Meta.
func (p *Plan) describe(o *Options) {
	t := p.Tensors
	p.Meta = plan.Meta{
		Solver: o.Solver, Alignment: o.Align, Rows: t.Rows, Digest: t.Digest, Source: t.Meta.Source,
		End: t.Rows, Devices: t.Meta.Devices, Capacity: t.Meta.Capacity, RowsOf: t.rowsOf,
	}
	p.Meta.AllocConf, p.Meta.Preexisting = t.Meta.AllocConf, t.recorded.older
	if o.Window != nil {
		p.Meta.First, p.Meta.End = o.Window.Lo, o.Window.Hi
		if o.Periodic {
			p.Meta.Period = o.Window.Hi - o.Window.Lo
		}
	} else {
		p.Meta.Segments, p.Meta.Emptied = t.recorded.segments, t.recorded.emptied
	}
	largest := int64(0)
	for i := range p.Arenas {
		a := &p.Arenas[i]
		p.Meta.Peak += a.Peak
		p.Meta.LowerBound += a.LowerBound
		if a.Peak > largest && a.Method != o.Solver {
			largest, p.Meta.Solver = a.Peak, o.Solver+":"+a.Method
		}
	}
	p.Meta.Optimal = p.Meta.Peak == p.Meta.LowerBound
}

// writeRows is the number of rows in a batch.
const writeRows = 4096

// Write writes the rows to w, which must have been made with p.Meta.
func (p *Plan) Write(w *plan.Writer) error {
	t := p.Tensors
	arenas := make([]int32, len(p.Arenas))
	for i := range arenas {
		arenas[i] = w.Strings().Code(p.Arenas[i].Name)
	}
	recode := func(texts *column.Strings) []int32 {
		codes := make([]int32, texts.Len())
		for i := range codes {
			codes[i] = w.Strings().Code(texts.Text(int32(i)))
		}
		return codes
	}
	pools, tags := recode(t.Pools), recode(t.Tags)
	var b plan.Batch
	for k, i := range p.Member {
		b.Append(plan.Tensor{
			ID: t.ID[i], Size: t.Size[i], Alloc: t.Alloc[i], Free: t.Free[i], AllocNS: t.AllocNS[i], FreeNS: t.FreeNS[i],
			Device: t.Device[i], Stream: t.Stream[i], Pool: pools[t.Pool[i]], Arena: arenas[p.Arena[k]], Offset: p.Offset[k], Tag: tags[t.Tag[i]],
		})
		if b.Len() == writeRows || k == len(p.Member)-1 {
			if err := w.Write(&b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return nil
}
