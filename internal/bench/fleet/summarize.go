// Package fleet sums up jobs, and keeps their summaries in a dataset that grows job by job.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gm/formats/column"
	"gm/formats/summary"
	"gm/formats/trace"
	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/bench/why"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/overview"
	"gm/internal/trace/ranks"
	"gm/internal/trace/tags"
)

// stacks is how many stacks of the peak are kept.
const stacks = 3

// Ranks sums up the traces of a job's ranks, as many at once as there are cores. Ranks with the same requests are replayed once. It calls
// done after each rank. Traces that cannot be read are left out of the job. The rows have no Job yet, which the caller names.
func Ranks(ctx context.Context, j *ranks.Job, done func()) ([]*summary.Summary, error) {
	rows := make([][]*summary.Summary, len(j.Members))
	known := newKnown()
	err := j.Each(ctx, runtime.GOMAXPROCS(0), done, func(m *ranks.Member, source *column.Source) (err error) {
		rows[m.Index], err = sumUp(ctx, source, known)
		for _, s := range rows[m.Index] {
			s.Rank = m.Rank
		}
		return err
	})
	return slices.Concat(rows...), err
}

// Trace sums up one trace, a row for each of its GPUs, without a Job.
func Trace(ctx context.Context, source *column.Source) ([]*summary.Summary, error) {
	return sumUp(ctx, source, newKnown())
}

func sumUp(ctx context.Context, source *column.Source, known *known) ([]*summary.Summary, error) {
	o, err := trace.ReadSource(source, known.read.Read)
	if err != nil {
		return nil, err
	}
	labels, err := trace.ReadSource(source, tags.Derive)
	if err != nil {
		return nil, err
	}
	tops, err := trace.ReadSource(source, func(r *trace.Reader) ([]*overview.Top, error) {
		return overview.ReadTop(r, o, overview.Look{Groups: stacks, Tags: labels})
	})
	if err != nil {
		return nil, err
	}
	programs, err := trace.ReadSource(source, replay.Load)
	if err != nil {
		return nil, err
	}
	var rows []*summary.Summary
	for _, d := range o.Devices {
		s := facts(o, d)
		for _, top := range tops {
			if top.Device == d.Ordinal && len(top.Moments) > 0 && top.Moments[0].What == "peak" {
				atPeak(s, top.Moments[0])
			}
		}
		for _, p := range programs {
			if p.Device == d.Ordinal {
				n, err := known.of(ctx, p)
				if err != nil {
					return nil, err
				}
				n.tell(s)
			}
		}
		rows = append(rows, s)
	}
	return rows, nil
}

// facts returns what an overview says of a GPU.
func facts(o *overview.Overview, d *overview.Device) *summary.Summary {
	m := &o.Meta
	s := &summary.Summary{
		Name: m.Command, Host: m.Host, Command: m.Command, Source: m.Source, Settings: m.AllocConf, Rank: -1, WorldSize: max(m.WorldSize, 0),
		Device: int64(d.Ordinal), PID: max(m.PID, 0), StartNS: o.StartNS, Duration: o.EndNS - o.StartNS, Rows: o.Rows, Iterations: int64(len(d.Iterations)),
		IterationNS: d.IterationNS, OOMs: int64(len(d.OOMs)), Capacity: m.Capacity, Reserved: d.PeakReserved,
	}
	if m.WorldSize > 0 {
		s.Rank = m.Rank
	}
	if s.Name == "" {
		s.Name = m.Source
	}
	if int(d.Ordinal) < len(m.Devices) {
		s.Card = m.Devices[d.Ordinal]
	}
	_, s.Peak, _ = d.Peak()
	if d.Driver != nil {
		s.Driver = d.Driver.Peak
		s.NCCL = d.Driver.AtPeak(overview.NCCL)
		s.OOMs += int64(len(d.Driver.Refusals))
	}
	return s
}

// atPeak adds what is live at the peak.
func atPeak(s *summary.Summary, m *overview.Moment) {
	names := summary.Tags()
	other := len(names) - 1
	s.Tags[other] = m.Live
	for _, g := range m.Tags {
		if i := slices.Index(names, tags.TagOf(g.Name)); i >= 0 && i < other {
			s.Tags[i] += g.Bytes
			s.Tags[other] -= g.Bytes
		}
	}
	var lines []string
	for _, g := range m.Stacks {
		if g.Name != "" {
			lines = append(lines, fmt.Sprintf("%s %d", g.Name, g.Bytes))
		}
	}
	s.Stacks = strings.Join(lines, "\n")
}

// needs is what allocators need for a program.
type needs struct {
	once                      sync.Once
	torch, expandable, stitch int64
	lost                      []int64 // by summary.Causes
	err                       error
}

// known is the needs by what is requested.
type known struct {
	read    overview.Shared
	lock    sync.Mutex
	results map[replay.Digest]*needs
}

func newKnown() *known { return &known{results: map[replay.Digest]*needs{}} }

func (k *known) of(ctx context.Context, p *replay.Program) (*needs, error) {
	digest := p.Digest()
	k.lock.Lock()
	n := k.results[digest]
	if n == nil {
		n = &needs{}
		k.results[digest] = n
	}
	k.lock.Unlock()
	n.once.Do(func() { n.err = n.find(ctx, p) })
	return n, n.err
}

func (n *needs) find(ctx context.Context, p *replay.Program) error {
	specs, err := bench.ParseSpecs("torch,expandable,stitch")
	if err != nil {
		return err
	}
	rows, err := bench.Compare(ctx, []*replay.Program{p}, specs, 0, func() {})
	if err != nil {
		return err
	}
	n.torch, n.expandable, n.stitch = rows[0].PeakReserved, rows[1].PeakReserved, rows[2].PeakReserved
	recorded := specs[:1]
	if conf, _ := allocconf.Recorded(p.AllocConf); conf.Expandable {
		recorded = specs[1:2]
	}
	accounts, err := why.ExplainAll(ctx, p, recorded, bench.GPU{Costs: sim.H200()}, func() {})
	if err != nil {
		return err
	}
	n.lost = make([]int64, len(summary.Causes()))
	for _, part := range accounts[0].Parts {
		i := slices.Index(summary.Causes(), part.Name)
		if i < 0 && part.Bytes > 0 {
			return errors.New("BUG: lost bytes of an unknown cause: " + part.Name)
		}
		if i >= 0 {
			n.lost[i] = part.Bytes
		}
	}
	return nil
}

// leastSaved is the part of what is reserved that a setting must save to help: one in so many.
const leastSaved = 100

func (n *needs) tell(s *summary.Summary) {
	s.Torch, s.Expandable, s.Stitch = n.torch, n.expandable, n.stitch
	copy(s.Lost[:], n.lost)
	conf, _ := allocconf.Recorded(s.Settings)
	switch {
	case !conf.Expandable && n.expandable < n.torch-n.torch/leastSaved:
		s.Helps = "expandable_segments:True"
	case conf.Expandable && n.torch < n.expandable-n.expandable/leastSaved:
		s.Helps = "expandable_segments:False"
	}
}
