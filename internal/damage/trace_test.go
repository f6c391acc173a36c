package damage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/big"
	"math/rand/v2"
	"testing"

	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/bench"
	"gm/internal/bench/page"
	"gm/internal/bench/remedy"
	"gm/internal/bench/replay"
	"gm/internal/bench/why"
	"gm/internal/cuda/sim"
	"gm/internal/plan/check"
	"gm/internal/plan/layout"
	"gm/internal/report"
	"gm/internal/trace/changes"
	"gm/internal/trace/exporter"
	"gm/internal/trace/failure"
	"gm/internal/trace/overview"
	"gm/internal/trace/profile"
	"gm/internal/trace/tags"
)

// head returns a file of the first rows of a trace.
func head(t *testing.T, name string, rows int) []byte {
	r := open(t, name)
	var out bytes.Buffer
	w := trace.NewWriter(&out, r.Meta())
	var b trace.Batch
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if row < int64(rows) {
			e.Pool, e.Stack, e.Tag = w.Strings().Code(r.Strings().Text(e.Pool)), w.Strings().Code(r.Strings().Text(e.Stack)), w.Strings().Code(r.Strings().Text(e.Tag))
			b.Append(*e)
		}
		return nil
	})
	if err := errors.Join(err, w.Write(&b), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func open(t *testing.T, name string) *trace.Reader {
	r, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func traces(t *testing.T) kind {
	files := map[string][]byte{}
	for _, name := range []string{"captures/oom", "captures/opt1.3b", "settings/pools-expandable", "settings/gc-split", "opt13b-LRV"} {
		files[name] = head(t, "../../testdata/"+name+".parquet", 400)
	}
	files["settings/full"] = head(t, "../../testdata/settings/full.parquet", 900) // a request fails in row 801
	return kind{"trace", files, useTrace, []string{
		"alloc", "free", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom", "snapshot",
		"mark", "sample", "framework", "driver", "memory by=nccl", "physical", "context", "pool", "pool by=", "managed", "pinned", "card", "process",
		"preexisting", "preexisting block=1", "preexisting block=140737488355328", "preexisting block=9223372036854775807", "preexisting block=-5",
		"Optimizer.step#SGD START", "Optimizer.step#SGD END", "expandable_segments:True", "max_split_size_mb:-1,roundup_power2_divisions:[1:9,>:1]",
		"garbage_collection_threshold:0.9",
	}}
}

// reading reads a trace from its beginning.
func reading[T any](file string, read func(*trace.Reader) (T, error)) (T, error) {
	r, err := trace.Open(file)
	if err != nil {
		var none T
		return none, err
	}
	result, err := read(r)
	return result, errors.Join(err, r.Close())
}

// useTrace does what gmtrace, gmplan and gmbench do with a trace.
func useTrace(t *testing.T, rng *rand.Rand, file string) error {
	o, err := reading(file, overview.Read)
	if err != nil {
		return err
	}
	a, err := reading(file, accountOf)
	if err != nil {
		return err
	}
	a.compare(t, o)
	for _, use := range []func(*testing.T, *rand.Rand, string, *overview.Overview) error{useShow, useWhyOOM, useExport, usePlan, useBench} {
		if err := use(t, rng, file, o); err != nil {
			return err
		}
	}
	return nil
}

func useShow(t *testing.T, rng *rand.Rand, file string, o *overview.Overview) error {
	labels, err := reading(file, tags.Derive)
	if err != nil {
		return err
	}
	look := overview.Look{Groups: 10, Tags: labels}
	if rng.IntN(3) == 0 {
		row := rng.Int64N(o.Rows + 1)
		look.At = &row
	}
	tops, err := reading(file, func(r *trace.Reader) ([]*overview.Top, error) { return overview.ReadTop(r, o, look) })
	if err != nil {
		return err
	}
	notNegative(t, "show", o)
	notNegative(t, "show --top", tops)
	if _, err := reading(file, func(r *trace.Reader) (any, error) { return profile.Read(r, o, labels, look.At) }); err != nil {
		return err
	}
	if look.At == nil {
		views := map[int32]overview.View{}
		for _, d := range o.Devices {
			views[d.Ordinal] = o.Whole(rng.IntN(2) == 0)
		}
		frames, err := reading(file, func(r *trace.Reader) (*overview.Frames, error) { return overview.ReadFrames(r, o, views) })
		if err != nil {
			return err
		}
		split := overview.ByTag(labels, tops)
		if rng.IntN(2) == 0 {
			split = overview.ByStack(tops, func(folded string) string { return report.Stack(folded, 40) })
		}
		lines, err := reading(file, func(r *trace.Reader) ([]*overview.Timeline, error) { return frames.Read(r, split) })
		if err != nil {
			return err
		}
		notNegative(t, "show --png", lines)
	}
	contents, err := reading(file, func(r *trace.Reader) ([]*changes.Contents, error) { return changes.Read(r, o, nil) })
	for _, c := range contents {
		notNegative(t, "diff", changes.Compare(c, c, false))
	}
	return err
}

// useWhyOOM judges requests that failed, and replays the trace up to them.
func useWhyOOM(t *testing.T, rng *rand.Rand, file string, o *overview.Overview) error {
	failures, err := reading(file, func(r *trace.Reader) ([]*failure.Failure, error) { return failure.Read(r, o) })
	if err != nil {
		return err
	}
	notNegative(t, "why-oom", failures)
	labels, err := reading(file, tags.Derive)
	if err != nil {
		return err
	}
	movable, err := reading(file, func(r *trace.Reader) (map[int32]*failure.Movable, error) {
		return failure.ReadMovable(r, failures, labels)
	})
	if err != nil {
		return err
	}
	for _, m := range movable {
		notNegative(t, "why-oom, gmswap", m)
	}
	if len(failures) == 0 || rng.IntN(4) > 0 {
		return nil
	}
	programs, err := reading(file, replay.Load)
	if err != nil {
		return err
	}
	for _, p := range programs {
		for _, f := range failures {
			if f.Device != p.Device || f.By != "" || f.Cause == failure.Unknown {
				continue
			}
			results, err := remedy.Replay(t.Context(), p, f)
			if err != nil {
				return err
			}
			notNegative(t, "why-oom, replayed", results.Trials)
		}
	}
	return nil
}

func useExport(_ *testing.T, rng *rand.Rand, file string, _ *overview.Overview) error {
	labels, err := reading(file, tags.Derive)
	if err != nil {
		return err
	}
	tagged := trace.NewWriter(io.Discard, trace.Meta{})
	if _, err := reading(file, func(r *trace.Reader) (any, error) { return nil, errors.Join(labels.Write(r, tagged), tagged.Close()) }); err != nil {
		return err
	}
	format := []exporter.Format{exporter.Pickle, exporter.CSV, exporter.RMM, exporter.STAlloc, exporter.Perfetto, exporter.Tensors}[rng.IntN(6)]
	return exporter.Export(func() (*trace.Reader, error) { return trace.Open(file) }, nil, format, io.Discard, func(string) {})
}

// usePlan lays a trace out; the plan passes the checker.
func usePlan(t *testing.T, rng *rand.Rand, file string, _ *overview.Overview) error {
	tensors, err := reading(file, layout.Collect)
	if err != nil || tensors.Len() == 0 {
		return err
	}
	solver := []string{"skyline-Z", "best-fit", "bilevel"}[rng.IntN(3)]
	p, err := layout.Solve(t.Context(), tensors, layout.Options{Solver: solver})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w := plan.NewWriter(&out, p.Meta)
	if err := errors.Join(p.Write(w), w.Close()); err != nil {
		t.Errorf("write the plan: %v", err)
		return nil
	}
	checkPlan(t, out.Bytes())
	return nil
}

// checkPlan checks a plan that is read back.
func checkPlan(t *testing.T, file []byte) {
	r, err := plan.NewReader(bytes.NewReader(file), int64(len(file)), "plan")
	if err == nil {
		_, err = check.Check(r, nil)
	}
	if err != nil {
		t.Errorf("a plan that was made: %v", err)
	}
}

// useBench replays a trace through allocators on a simulated device.
func useBench(t *testing.T, rng *rand.Rand, file string, _ *overview.Overview) error {
	programs, err := reading(file, replay.Load)
	if err != nil || len(programs) == 0 {
		return err
	}
	if _, err := reading(file, func(r *trace.Reader) (any, error) { return replay.Verify(r, rng.Int64N(2)<<36) }); err != nil {
		return err
	}
	return compareAllocators(t, rng, programs)
}

// compareAllocators compares allocators, takes apart what they lose, and makes a page.
func compareAllocators(t *testing.T, rng *rand.Rand, programs []*replay.Program) error {
	specs := bench.AllSpecs()
	rng.Shuffle(len(specs), func(i, j int) { specs[i], specs[j] = specs[j], specs[i] })
	specs = specs[:1+rng.IntN(2)]
	gpu := bench.GPU{Capacity: rng.Int64N(2) << 34, Costs: sim.H200()}
	rows, err := bench.CompareOn(context.Background(), programs, specs, gpu, func() {})
	if err != nil {
		return err
	}
	notNegative(t, "bench", rows)
	for _, r := range rows {
		if r.PeakReserved < r.PeakAllocated {
			t.Errorf("%s reserves %d bytes and hands out %d", r.Allocator, r.PeakReserved, r.PeakAllocated)
		}
	}
	for _, p := range programs {
		if rng.IntN(4) > 0 {
			break
		}
		accounts, err := why.ExplainAll(context.Background(), p, specs, gpu, func() {})
		if err != nil {
			return err
		}
		for _, a := range accounts {
			sum := int64(0)
			for _, part := range a.Parts {
				sum += part.Bytes
			}
			if sum != a.Reserved-a.Requested {
				t.Errorf("%s: %d bytes are lost, %d explained", a.Allocator, a.Reserved-a.Requested, sum)
			}
		}
	}
	if rng.IntN(8) > 0 {
		return nil
	}
	mapped := -1
	if specs[0].OneAddress {
		mapped = 0
	}
	sections, err := page.Measure(context.Background(), programs, specs, mapped, gpu, func() {})
	if err != nil {
		return err
	}
	return (&page.Report{Title: "x", Sections: sections}).Write(io.Discard)
}

// account is what a trace holds, kept in numbers without end.
type account struct {
	devices map[int32]*ledger
}

// ledger is that of the framework's rows of a device.
type ledger struct {
	live         map[int64]int64
	now, peak    *big.Int
	held, mostly *big.Int // by segments
	odd          bool     // more is freed than was there
	allocs       int64
}

func accountOf(r *trace.Reader) (*account, error) {
	a := &account{map[int32]*ledger{}}
	return a, trace.Each(r, func(_ int64, e *trace.Event) error {
		if e.Level != trace.LevelFramework || e.Op == trace.OpMark || e.Op == trace.OpSnapshot || e.Op == trace.OpSample {
			return nil
		}
		l := a.devices[e.Device]
		if l == nil {
			l = &ledger{map[int64]int64{}, new(big.Int), new(big.Int), new(big.Int), new(big.Int), false, 0}
			a.devices[e.Device] = l
		}
		l.add(e)
		return nil
	})
}

func (l *ledger) add(e *trace.Event) {
	size := big.NewInt(e.Size)
	switch e.Op {
	case trace.OpAlloc:
		l.allocs++
		l.live[e.ID] = e.Size
		l.now.Add(l.now, size)
	case trace.OpFree, trace.OpFreeCompleted:
		l.now.Sub(l.now, big.NewInt(l.live[e.ID]))
		delete(l.live, e.ID)
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		l.held.Add(l.held, size)
	case trace.OpSegmentFree, trace.OpSegmentUnmap:
		l.held.Sub(l.held, size)
	}
	l.odd = l.odd || l.held.Sign() < 0
	if l.now.Cmp(l.peak) > 0 {
		l.peak.Set(l.now)
	}
	if l.held.Cmp(l.mostly) > 0 {
		l.mostly.Set(l.held)
	}
}

// compare holds what show says against the account.
func (a *account) compare(t *testing.T, o *overview.Overview) {
	for _, d := range o.Devices {
		l := a.devices[d.Ordinal]
		if l == nil {
			continue
		}
		if d.Allocs != l.allocs || d.Unfreed != int64(len(l.live)) || l.peak.Cmp(big.NewInt(d.PeakLive)) != 0 {
			t.Errorf("device %d: %d allocs, %d unfreed, a peak of %d; expected %d, %d, %v",
				d.Ordinal, d.Allocs, d.Unfreed, d.PeakLive, l.allocs, len(l.live), l.peak)
		}
		if !l.odd && l.mostly.Cmp(big.NewInt(d.PeakReserved)) != 0 {
			t.Errorf("device %d: %d bytes of segments, expected %v", d.Ordinal, d.PeakReserved, l.mostly)
		}
	}
}
