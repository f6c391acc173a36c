package remedy

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gm/internal/bench/replay"
	"gm/internal/cuda"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/failure"
	"gm/internal/trace/failure/failuretest"
	"gm/internal/trace/importer/tracetest"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// explain replays the failure of a trace.
func explain(t *testing.T, file []byte) (*failure.Failure, *Results) {
	t.Helper()
	f := failuretest.Only(t, file)
	programs, err := replay.Load(tracetest.Open(t, file, "x"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Replay(t.Context(), programs[0], f)
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

// of returns the trial of a kind, of settings the first.
func (r *Results) of(kind Kind) Trial {
	for _, t := range r.Trials {
		if t.Kind == kind {
			return t
		}
	}
	return Trial{}
}

// TestFragmented: every other tensor of 8 MiB is freed, and then 300 MiB are requested. Each page of an expandable segment keeps a tensor,
// so they do not help; what places the tensors by their ends, or maps free pieces together, does.
func TestFragmented(t *testing.T) {
	m := failuretest.New(t, gib, allocconf.Default())
	for range 100 {
		m.Alloc(8*mib, 0)
	}
	for i := range 50 {
		m.Free(i)
	}
	m.Alloc(300*mib, 0)
	f, r := explain(t, m.Trace(0))
	if f.Cause != failure.Fragmented || r.Recorded.Met != No || r.Recorded.Row != f.Row {
		t.Errorf("%+v, %+v", f, r.Recorded)
	}
	if layout, expandable := r.of(Layout), r.of(Settings); layout.Met != Yes || layout.Reserved != 800*mib || expandable.Met != No {
		t.Errorf("%+v", r.Trials)
	}
	if stitch := r.of(Stitch); stitch.Met != Yes || stitch.Reserved > gib {
		t.Errorf("%+v", stitch)
	}
	if r.Card == nil || r.Card.Name != "GTX 1650" {
		t.Errorf("card: %+v", r.Card)
	}
}

// TestWholePages: the tensors are as large as pages, so that expandable segments give their memory back.
func TestWholePages(t *testing.T) {
	m := failuretest.New(t, gib, allocconf.Default())
	for range 12 {
		m.Alloc(80*mib, 0)
	}
	for i := range 6 {
		m.Free(i)
	}
	for range 6 {
		m.Alloc(60*mib, 0)
	}
	m.Alloc(160*mib, 0)
	f, r := explain(t, m.Trace(0))
	first := r.of(Settings)
	if f.Cause != failure.Fragmented || r.Recorded.Met != No || first.Setting != "expandable_segments:True" || first.Met != Yes {
		t.Errorf("%+v, %+v", f, r)
	}
}

// TestFull: where the tensors need more than there is, nothing is tried but larger cards.
func TestFull(t *testing.T) {
	m := failuretest.New(t, 23*gib, allocconf.Default())
	for m.Alloc(gib, 0) {
	}
	f, r := explain(t, m.Trace(0))
	if f.Cause != failure.Full || len(r.Trials) > 0 || r.Card == nil || r.Card.Name != "A100" || f.Need != 24*gib {
		t.Errorf("%+v, %+v", f, r)
	}
}

// TestMidway: other settings would not have laid out in the same way what was there before a recording. If the settings that failed would have
// met the request with another layout, nothing is said of the others.
func TestMidway(t *testing.T) {
	m := failuretest.New(t, gib, allocconf.Default())
	for range 200 {
		m.Alloc(5*mib, 0)
	}
	for i := range 100 {
		m.Free(i)
	}
	first := len(m.Rows)
	m.Alloc(200*mib, 0)
	_, r := explain(t, m.Trace(first))
	if r.Recorded.Met != No || r.of(Settings).Met != Unknown || r.of(Stitch).Met != Unknown || r.of(Layout).Met != Yes {
		t.Errorf("%+v", r)
	}
}

// TestRandom: a replay with the recorded settings fails where the program failed, and what meets the request does so in the memory there is.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	met := 0
	for run := range 40 {
		conf := allocconf.Default()
		conf.Expandable = run%4 == 0
		if run%5 == 0 {
			conf.MemoryFraction = 0.5
		}
		m := failuretest.New(t, gib, conf)
		for m.Alloc(1+rng.Int64N(100*mib), cuda.Stream(rng.IntN(2))) {
			if n := len(m.Live()); rng.IntN(4) == 0 {
				m.Free(rng.IntN(n))
			}
		}
		f, r := explain(t, m.Trace(0))
		if r.Recorded.Met == Yes || r.Recorded.Met == No && r.Recorded.Row != f.Row {
			t.Errorf("run %d: %+v, %+v", run, f, r.Recorded)
		}
		for _, trial := range r.Trials {
			if trial.Met == Yes {
				met++
			}
			if trial.Met == Yes && (trial.Reserved > max(f.Room, f.Most) || trial.Reserved < f.Need/2) || trial.Met == No && trial.Row > f.Row {
				t.Errorf("run %d: %+v, %+v", run, f, trial)
			}
		}
	}
	if met == 0 {
		t.Error("nothing helped, in any run")
	}
}

// TestRecordings replays recordings of PyTorch: with its settings the same request fails.
func TestRecordings(t *testing.T) {
	for _, file := range []string{
		"snapshots/oom.pickle.gz", "captures/oom.parquet", "settings/full.parquet", "settings/expandable-full.parquet",
		"settings/split32-full.parquet", "settings/gc.parquet", "settings/gc-split.parquet",
	} {
		f, r := explain(t, bytes.Clone(tracetest.Read(t, "../../../testdata/"+file)))
		if r.Recorded.Met == Yes || r.Recorded.Met == No && r.Recorded.Row != f.Row {
			t.Errorf("%s: %+v, %+v", file, f, r.Recorded)
		}
	}
}
