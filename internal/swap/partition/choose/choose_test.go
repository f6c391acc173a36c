package choose

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gm/internal/swap/partition"
	"gm/internal/swap/partition/partitiontest"
)

// least tries all choices, and returns the least peak, and the least time of those that keep to the limit; -1 if none does.
func least(r *partition.Request) (peak, ns int64) {
	m := partition.NewMachine(&r.Problem)
	free := partitiontest.Free(&r.Problem)
	peak, ns = math.MaxInt64, -1
	for mask := range 1 << len(free) {
		saved := make([]bool, len(r.Values))
		for _, v := range partitiontest.Fixed(&r.Problem) {
			saved[v] = true
		}
		for i, v := range free {
			saved[v] = mask>>i&1 == 1
		}
		c := m.Run(saved, r.Limit)
		peak = min(peak, c.Peak)
		if c.Over == 0 && (ns < 0 || c.NS < ns) {
			ns = c.NS
		}
	}
	return peak, ns
}

// answered returns the answer to a request, which passes its check.
func answered(t *testing.T, r *partition.Request) *partition.Answer {
	t.Helper()
	a, err := Answer(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(text); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestOptimum compares what is found with the best of all choices, on random problems under limits from the least peak to that of all saved.
func TestOptimum(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tried, best, found, worst, missed := 0, 0, 0, 1.0, 0
	for tried < 400 {
		p := partitiontest.Random(r, 3+r.IntN(9))
		if n := len(partitiontest.Free(p)); n < 3 || n > 11 {
			continue
		}
		tried++
		x := &partition.Request{Problem: *p, Saved: append(partitiontest.Fixed(p), partitiontest.Free(p)...)}
		slices.Sort(x.Saved)
		low, _ := least(x)
		saved, _ := x.Marks(x.Saved)
		high := partition.NewMachine(p).Run(saved, 0).Peak
		x.Limit = low + r.Int64N(max(1, high-low+1))
		_, want := least(x)
		a := answered(t, x)
		switch {
		case a.Peak > x.Limit:
			missed++
			worst = max(worst, float64(a.Peak)/float64(x.Limit))
		case a.NS < want:
			t.Fatalf("%d ns, and the least of all is %d", a.NS, want)
		case a.NS == want:
			best++
			found++
		default:
			found++
		}
	}
	t.Logf("of %d: %d within the limit, %d of them with the least time; %d not, the worst takes %.3f of it", tried, found, best, missed, worst)
	if best < tried*95/100 || missed > tried/100 {
		t.Error("the search misses what there is")
	}
}

// TestStays keeps a choice that keeps to the limit.
func TestStays(t *testing.T) {
	p := partitiontest.Random(rand.New(rand.NewPCG(5, 6)), 10)
	x := &partition.Request{Problem: *p, Saved: append(partitiontest.Fixed(p), partitiontest.Free(p)...), Limit: 1 << 40}
	a, err := Answer(x)
	if err != nil || a.NS != 0 || a.Peak != a.Before {
		t.Errorf("%+v, %v", a, err)
	}
}

// recorded reads a request of a model that was compiled.
func recorded(t testing.TB, name string) *partition.Request {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var r partition.Request
	if err := json.NewDecoder(z).Decode(&r); err != nil {
		t.Fatal(err)
	}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	return &r
}

// TestRecorded chooses for models that were compiled: what it finds keeps to limits, and takes at most a tenth more time than what a search
// finds that looks at thirty times as much.
func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		name  string
		least float64    // of the peak of what PyTorch saves
		long  [3]float64 // the share of the step at 0.8, 0.6 and 0.45 of the peak
	}{
		{"llama", 0.38, [...]float64{0.0281, 0.0595, 0.0905}},
		{"bert", 0.42, [...]float64{0.0100, 0.0251, 0.0674}},
		{"densenet", 0.42, [...]float64{0.0331, 0.0627, 0.0888}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := recorded(t, c.name)
			var step int64
			for i := range r.Ops {
				step += r.Ops[i].NS
			}
			saved, err := r.Marks(r.Saved)
			if err != nil {
				t.Fatal(err)
			}
			peak := partition.NewMachine(&r.Problem).Run(saved, 0).Peak
			for i, limit := range []float64{0.8, 0.6, 0.45} {
				r.Limit = int64(limit * float64(peak))
				a := answered(t, r)
				took := float64(a.NS) / float64(step)
				t.Logf("at %.2f of %.0f MiB: recomputing takes %.2f %% of the step", limit, float64(peak)/(1<<20), 100*took)
				if a.Peak > r.Limit || took > 1.1*c.long[i] {
					t.Errorf("a peak of %.3f, and %.4f of the step, want %.4f at most", float64(a.Peak)/float64(peak), took, 1.1*c.long[i])
				}
			}
			r.Limit = 0
			a := answered(t, r)
			if share := float64(a.Peak) / float64(peak); share > c.least {
				t.Errorf("the least that is found is %.3f of what PyTorch saves, want %.3f", share, c.least)
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	r := recorded(b, "llama")
	for b.Loop() {
		if _, err := Answer(r); err != nil {
			b.Fatal(err)
		}
	}
}
