package replay

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gm/formats/column"
	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/plan/check"
	"gm/internal/trace/recording"
)

// Load reads the requests of a trace, as one program for each device.
func Load(r *trace.Reader) ([]*Program, error) {
	if r.Rows() > math.MaxInt32 {
		return nil, r.Wrap(fmt.Errorf("%d rows, more than the %d that can be numbered in a replay", r.Rows(), math.MaxInt32))
	}
	l := newLoader(r.Name(), r.Meta().AllocConf, r.Meta().Alignment)
	var clock recording.Clock
	others := outside{}
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		clock.Add(e.TimeNS)
		if concerns(e) {
			l.add(e, row, r.Strings().Text(e.Tag))
		} else if e.Level == trace.LevelDriver {
			others.add(e, r.Strings().Text(e.Tag))
		}
		if l.rows > maxRows {
			return r.Wrap(fmt.Errorf("row %d: more than %d rows of a framework's allocator, the most that can be replayed", row, maxRows))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range l.programs {
		p.Jump, p.Capacity = clock.Forward(), r.Meta().Capacity
		p.Outside = others.most(p.Device)
	}
	return l.finish(), nil
}

// concerns reports whether a row belongs to a framework's allocator.
func concerns(e *trace.Event) bool {
	return e.Level == trace.LevelFramework && e.Op != trace.OpMark && e.Op != trace.OpSnapshot && e.Op != trace.OpSample
}

// LoadPlan rebuilds the requests from a plan, as one program for each device.
func LoadPlan(r *plan.Reader) ([]*Program, error) {
	m := r.Meta()
	l := newLoader(r.Name(), m.AllocConf, m.Alignment)
	var steps []planStep
	for i := 0; i < len(m.Emptied); i += 2 {
		steps = append(steps, planStep{l.program(int32(m.Emptied[i])).Program, Empty, 0, m.Emptied[i+1], 0})
	}
	for i := 0; i < len(m.Segments); i += 3 {
		p := l.program(int32(m.Segments[i]))
		p.Segments = append(p.Segments, sim.Range{Addr: cuda.Ptr(m.Segments[i+1]), Size: m.Segments[i+2]})
	}
	err := plan.Each(r, func(t *plan.Tensor) error {
		p := l.program(t.Device)
		tensor := p.tensor(t.Size, t.Stream, t.Pool)
		p.place(t)
		steps = append(steps, planStep{p.Program, Alloc, tensor, t.Alloc, t.AllocNS})
		if t.Free < m.Rows {
			steps = append(steps, planStep{p.Program, Free, tensor, t.Free, t.FreeNS})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(steps, func(a, b planStep) int { return cmp.Compare(a.row, b.row) })
	nowNS := int64(0)
	if i := slices.IndexFunc(steps, func(s planStep) bool { return s.kind != Empty }); i >= 0 {
		nowNS = steps[i].timeNS
	}
	for _, s := range steps {
		if s.kind != Empty { // a plan has no times of these
			nowNS = s.timeNS
		}
		s.program.step(s.kind, s.tensor, s.row, nowNS)
	}
	for _, p := range l.programs {
		p.Partial = m.Preexisting > 0 || m.First > 0 || m.End < m.Rows
	}
	l.programs = slices.DeleteFunc(l.programs, func(p *Program) bool { return len(p.Sizes) == 0 })
	return l.finish(), nil
}

// planStep is a step of one of a plan's programs, before they are sorted.
type planStep struct {
	program *Program
	kind    Kind
	tensor  int32
	row     int64
	timeNS  int64
}

// place adds the plan's placement of a tensor.
func (p *loading) place(t *plan.Tensor) {
	arena, ok := p.arenas[t.Arena]
	if !ok {
		arena = int32(len(p.Arenas))
		p.arenas[t.Arena] = arena
		p.Arenas = append(p.Arenas, 0)
	}
	p.Arenas[arena] = max(p.Arenas[arena], t.Offset+t.Size)
	p.Placements = append(p.Placements, blocks.Placement{Size: t.Size, Arena: arena, Offset: t.Offset})
}

// Open loads the named file, a trace or a plan in Parquet, as Read does.
func Open(name string) ([]*Program, error) {
	source, err := column.OpenSource(name)
	if err != nil {
		return nil, err
	}
	return Read(source)
}

// Read loads a trace or a plan from a source, which it takes over: it is closed, unless it can be opened only once. Then it stays open for
// Stacks. Programs are named after the source, and those from standard input after what the file records as its source.
func Read(source *column.Source) (programs []*Program, err error) {
	from := &origin{name: source.Name()}
	if source.Once() {
		from.kept = source
	} else {
		defer func() { err = errors.Join(err, source.Close()) }()
	}
	programs, made, err := load(source)
	for _, p := range programs {
		p.origin = from
		if made != "" && source.Name() == column.StandardInput {
			p.Name = strings.Replace(p.Name, source.Name(), made, 1)
		}
	}
	return programs, err
}

// load also returns the name of what the trace was made from.
func load(source *column.Source) (programs []*Program, made string, err error) {
	kind, err := column.Kind(source, source.Size())
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", source.Name(), err)
	}
	if kind == "plan" {
		if err := checkPlan(source); err != nil {
			return nil, "", err
		}
		r, err := plan.NewReader(source, source.Size(), source.Name())
		if err != nil {
			return nil, "", err
		}
		programs, err = LoadPlan(r)
		return programs, r.Meta().Source, err
	}
	r, err := trace.NewReader(source, source.Size(), source.Name())
	if err != nil {
		return nil, "", err
	}
	programs, err = Load(r)
	return programs, r.Meta().Source, err
}

// checkPlan makes sure that no tensor of a plan overlaps another.
func checkPlan(source *column.Source) error {
	r, err := plan.NewReader(source, source.Size(), source.Name())
	if err != nil {
		return err
	}
	_, err = check.Check(r, nil)
	return err
}
