package recording_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/plan/check"
	"gm/internal/plan/layout"
	"gm/internal/trace/importer/tracetest"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
)

// copier copies a trace and, if mixed, puts rows of the driver's level, samples and marks between its rows.
type copier struct {
	out   bytes.Buffer
	w     *trace.Writer
	from  *trace.Reader
	mixed bool
	batch trace.Batch
	ids   map[int64]int64  // of the copied trace, by those of the original
	given map[uint64]int64 // ids of the driver's allocs, by address
	last  int64
}

// copyTrace returns a copy of a recording.
func copyTrace(t *testing.T, recording []byte, mixed bool) []byte {
	t.Helper()
	from := open(t, recording)
	c := &copier{from: from, mixed: mixed, ids: map[int64]int64{}, given: map[uint64]int64{}}
	c.w = trace.NewWriter(&c.out, from.Meta())
	var end trace.Event
	err := trace.Each(from, func(row int64, e *trace.Event) error {
		c.before(e, row)
		c.copy(*e)
		c.after(e, row)
		end = *e
		if c.batch.Len() < 1<<14 {
			return nil
		}
		defer c.batch.Reset()
		return c.w.Write(&c.batch)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		c.driver(&end, trace.OpSample, 0, 900, "card")
	}
	if err := errors.Join(c.w.Write(&c.batch), c.w.Close()); err != nil {
		t.Fatal(err)
	}
	return c.out.Bytes()
}

func (c *copier) copy(e trace.Event) {
	text := c.from.Strings().Text
	if e.Op == trace.OpAlloc {
		c.last++
		c.ids[e.ID] = c.last
	}
	e.ID = c.ids[e.ID]
	e.Pool, e.Stack, e.Tag = c.w.Strings().Code(text(e.Pool)), c.w.Strings().Code(text(e.Stack)), c.w.Strings().Code(text(e.Tag))
	c.batch.Append(e)
}

// driver adds a row of the driver's level at the time of another.
func (c *copier) driver(at *trace.Event, op trace.Op, addr uint64, size int64, tag string) {
	if !c.mixed {
		return
	}
	e := trace.Event{
		TimeNS: at.TimeNS, Op: op, Addr: addr, Size: size, Device: at.Device, Level: trace.LevelDriver, Tag: c.w.Strings().Code(tag),
		Stack: c.w.Strings().Code(fmt.Sprint("main (train.py:", size%7, ")")),
	}
	switch op {
	case trace.OpAlloc:
		c.last++
		e.ID = c.last
		c.given[addr] = e.ID
	case trace.OpFree:
		if e.ID = c.given[addr]; e.ID == 0 {
			return
		}
		delete(c.given, addr)
	}
	c.batch.Append(e)
}

// before adds the driver's rows that go with a row of the framework's, and unrelated ones.
func (c *copier) before(e *trace.Event, row int64) {
	switch e.Op {
	case trace.OpSegmentAlloc:
		c.driver(e, trace.OpAlloc, e.Addr, e.Size, "memory by=pytorch")
	case trace.OpSegmentMap:
		c.driver(e, trace.OpAlloc, e.Addr, e.Size, "physical by=pytorch")
		c.driver(e, trace.OpSegmentMap, e.Addr, e.Size, "physical by=pytorch")
	case trace.OpSegmentFree:
		c.driver(e, trace.OpFree, e.Addr, e.Size, "memory by=pytorch")
	}
	elsewhere := *e
	elsewhere.Device = 5
	switch {
	case row%5 == 0:
		c.driver(e, trace.OpSample, 0, row, "process")
		c.driver(e, trace.OpSample, 0, row+100, "card")
	case row%31 == 0:
		c.driver(e, trace.OpOOM, 1<<30, e.Size, "memory by=nccl")
	case row%37 == 0:
		c.driver(&elsewhere, trace.OpAlloc, uint64(row), 4096, "memory by=nccl")
	case row%41 == 0 && c.mixed:
		c.batch.Append(trace.Event{TimeNS: e.TimeNS, Op: trace.OpMark, Device: 5, Tag: c.w.Strings().Code("epoch")})
	}
}

func (c *copier) after(e *trace.Event, row int64) {
	if e.Op == trace.OpSegmentUnmap {
		c.driver(e, trace.OpSegmentUnmap, e.Addr, e.Size, "physical by=pytorch")
		c.driver(e, trace.OpFree, e.Addr, e.Size, "physical by=pytorch")
	}
	switch {
	case e.Op.Segment() || row%7 == 0: // also right after released segments
		c.driver(e, trace.OpSegmentFree, e.Addr, 0, "pool by=rapids")
		c.driver(e, trace.OpSegmentAlloc, e.Addr, 0, "pool by=rapids")
		c.driver(e, trace.OpOOM, 0, 1<<40, "physical by=pytorch")
	case row%11 == 0:
		c.driver(e, trace.OpAlloc, e.Addr+1, 512, "pool by=rapids")
		c.driver(e, trace.OpFree, e.Addr+1, 512, "pool by=rapids")
	}
}

func open(t *testing.T, file []byte) *trace.Reader { return tracetest.Open(t, file, "x") }

// TestInterleaved checks that rows of other sources do not change any result about the framework's rows.
func TestInterleaved(t *testing.T) {
	var files []string
	for _, pattern := range []string{"settings/*.parquet", "settings/*.gz", "snapshots/*.gz"} {
		found, err := filepath.Glob(filepath.Join("../../../testdata", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 20 {
		t.Fatalf("%d recordings, want at least 20", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			recording := tracetest.Read(t, file)
			plain, mixed := copyTrace(t, recording, false), copyTrace(t, recording, true)
			for name, results := range map[string]func(*testing.T, []byte) any{
				"verify": verdicts, "bench": benches, "plan": plans, "overview": overviews,
			} {
				want, got := text(t, results(t, plain)), text(t, results(t, mixed))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: without the rows of others -, with them +\n%s", name, diff)
				}
			}
		})
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	b, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// verdicts returns the results of a replay of the recorded allocator, without the numbers of rows.
func verdicts(t *testing.T, file []byte) any {
	all, err := replay.Verify(open(t, file), 0)
	if err != nil {
		return err.Error()
	}
	for i := range all {
		if all[i].Divergence != nil {
			all[i].Divergence.Row = 0
		}
	}
	return all
}

func benches(t *testing.T, file []byte) any {
	programs, err := replay.Load(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := bench.Compare(context.Background(), programs, bench.AllSpecs(), 0, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// plans returns a plan that has been checked, without rows.
func plans(t *testing.T, file []byte) any {
	tensors, err := layout.Collect(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	p, err := layout.Solve(context.Background(), tensors, layout.Options{Solver: "skyline-A"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := plan.NewWriter(&out, p.Meta)
	if err := errors.Join(p.Write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := plan.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "x")
	if err != nil {
		t.Fatal(err)
	}
	report, err := check.Check(r, open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	meta := p.Meta
	meta.Rows, meta.End, meta.Digest, meta.SolveNS = 0, 0, "", 0
	for i := 1; i < len(meta.Emptied); i += 2 {
		meta.Emptied[i] = 0
	}
	return []any{report, meta, p.Offset, len(tensors.Iterations()), plannedBench(t, out.Bytes())}
}

// plannedBench replays a plan.
func plannedBench(t *testing.T, file []byte) any {
	r, err := plan.NewReader(bytes.NewReader(file), int64(len(file)), "x")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := replay.LoadPlan(r)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := bench.ParseSpecs("planned,torch")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := bench.Compare(context.Background(), programs, specs, 0, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// overviews returns the overview of the framework's level, without rows.
func overviews(t *testing.T, file []byte) any {
	o, err := overview.Read(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	labels, err := tags.Derive(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	top, err := overview.ReadTop(open(t, file), o, overview.Look{Groups: 5, Tags: labels})
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for _, d := range o.Devices {
		if !d.Framework() {
			continue
		}
		found := len(d.Iterations)
		d.Driver, d.PeakRow, d.Iterations = nil, 0, nil
		for i := range d.OOMs {
			d.OOMs[i].Row = 0
		}
		all = append(all, d, found)
	}
	for _, on := range top {
		for _, m := range on.Moments {
			if m.Row = 0; on.Level == trace.LevelFramework.String() && (m.Failed == nil || m.Failed.By == "") {
				all = append(all, m)
			}
		}
	}
	return all
}
