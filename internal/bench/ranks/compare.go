// Package ranks compares allocators on the traces of a job's ranks, which are read one at a time, or a few at once.
package ranks

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/trace/ranks"
)

// Table is the results of all ranks.
type Table struct {
	World      int64        `json:"world_size"`
	Allocators []string     `json:"allocators"`
	Ranks      []*Rank      `json:"ranks"`
	First      []*First     `json:"first_out"` // by allocator
	Different  int          `json:"request_sequences"`
	Missing    []int64      `json:"missing_ranks"`
	Left       []ranks.Left `json:"left_out"`
}

// Rank is the results of one GPU of a rank.
type Rank struct {
	Rank    int64    `json:"rank"` // -1 if unknown
	Device  int32    `json:"device"`
	Peak    int64    `json:"peak_live_bytes"` // as the allocator rounds it
	Results []Result `json:"results"`         // by allocator

	startNS int64
}

// Result is what one allocator needs. Sizes are in bytes.
type Result struct {
	Allocated int64      `json:"peak_allocated_bytes"`
	Reserved  int64      `json:"peak_reserved_bytes"`
	OOM       *bench.OOM `json:"oom"` // nil if all requests were met
}

// First is the rank that runs out of memory first or, if none does, the one that would with the least memory taken away.
type First struct {
	Rank     int64      `json:"rank"`
	Device   int32      `json:"device"`
	Failed   int        `json:"ranks_out_of_memory"` // how many run out
	AfterNS  int64      `json:"after_ns"`            // since the beginning of the rank's trace; 0 if none runs out
	Reserved int64      `json:"peak_reserved_bytes"`
	OOM      *bench.OOM `json:"oom"`
}

// Compare replays the trace of every rank through the allocators. Ranks with the same requests are replayed once. It calls done after each
// rank. Traces that cannot be read or replayed are left out of the job.
func Compare(ctx context.Context, j *ranks.Job, specs []bench.Spec, gpu bench.GPU, done func()) (*Table, error) {
	rows := make([][]*Rank, len(j.Members))
	known := &known{results: map[replay.Digest]*measured{}}
	err := j.Each(ctx, runtime.GOMAXPROCS(0), done, func(m *ranks.Member, source *column.Source) error {
		programs, err := trace.ReadSource(source, replay.Load)
		if err != nil {
			return err
		}
		for _, p := range programs {
			results, err := known.of(ctx, p, specs, gpu)
			if err != nil {
				return err
			}
			rows[m.Index] = append(rows[m.Index], &Rank{m.Rank, p.Device, p.PeakLive(), results, p.TimesNS[0]})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t := &Table{World: j.World, Missing: j.Missing, Left: j.Left, Different: len(known.results)}
	for _, s := range specs {
		t.Allocators = append(t.Allocators, s.Text)
	}
	t.Ranks = slices.Concat(rows...)
	for i := range specs {
		t.First = append(t.First, t.first(i))
	}
	return t, nil
}

// known is the results by what is requested.
type known struct {
	lock    sync.Mutex
	results map[replay.Digest]*measured
}

// measured is the results of one program, which the first that needs them finds.
type measured struct {
	once    sync.Once
	results []Result
	steps   []int // at which the requests failed; -1 for none, and for a failure before the first
	err     error
}

// of returns the results for a program that makes the same requests, at times and in rows of its own.
func (m *measured) of(p *replay.Program) []Result {
	all := slices.Clone(m.results)
	for i, step := range m.steps {
		if step >= 0 {
			oom := *all[i].OOM
			oom.Row, oom.TimeNS = int64(p.Rows[step]), p.TimesNS[step]
			all[i].OOM = &oom
		}
	}
	return all
}

// add adds the results of a program.
func (m *measured) add(p *replay.Program, rows []bench.Row) {
	for _, r := range rows {
		m.results = append(m.results, Result{r.PeakAllocated, r.PeakReserved, r.OOM})
		step := -1
		if r.OOM != nil && r.OOM.Row >= 0 {
			step = slices.Index(p.Rows, int32(r.OOM.Row))
		}
		m.steps = append(m.steps, step)
	}
}

func (k *known) of(ctx context.Context, p *replay.Program, specs []bench.Spec, gpu bench.GPU) ([]Result, error) {
	digest := p.Digest()
	k.lock.Lock()
	m := k.results[digest]
	if m == nil {
		m = &measured{}
		k.results[digest] = m
	}
	k.lock.Unlock()
	m.once.Do(func() {
		var all []bench.Row
		all, m.err = bench.CompareOn(ctx, []*replay.Program{p}, specs, gpu, func() {})
		m.add(p, all)
	})
	return m.of(p), m.err
}

// first returns the rank that runs out first with an allocator.
func (t *Table) first(allocator int) *First {
	var first *First
	failed := 0
	for _, r := range t.Ranks {
		result := r.Results[allocator]
		f := &First{Rank: r.Rank, Device: r.Device, Reserved: result.Reserved, OOM: result.OOM}
		if f.OOM != nil {
			failed++
			f.AfterNS = f.OOM.TimeNS - r.startNS
		}
		if first == nil || f.before(first) {
			first = f
		}
	}
	if first != nil {
		first.Failed = failed
	}
	return first
}

func (f *First) before(other *First) bool {
	if (f.OOM == nil) != (other.OOM == nil) {
		return f.OOM != nil
	}
	if f.OOM != nil {
		return f.AfterNS < other.AfterNS
	}
	return cmp.Compare(f.Reserved, other.Reserved) > 0
}
