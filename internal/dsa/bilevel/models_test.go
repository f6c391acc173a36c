package bilevel_test

import (
	"testing"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/bilevel"
	"gm/internal/dsa/solvers"
	"gm/internal/models/layouts"
)

// TestModels lays out an iteration of the models that MEMO trains.
func TestModels(t *testing.T) {
	for _, m := range layouts.Models(64 << 10) {
		for _, m.Offload = range []bool{false, true} {
			p := m.Problem()
			f, err := bilevel.FoldRepeats(t.Context(), p, both())
			if err != nil || f.Occurrences < int(m.Layers) || f.First+f.Second >= p.Len() {
				t.Fatalf("%s: %+v: %v", m.Name, f, err)
			}
			flat := solved(t, solvers.Auto(), p)
			folded := solved(t, both(), p)
			t.Logf("%s, offload %t: %+v, flat peak %.4f of the bound, bilevel %.4f", m.Name, m.Offload, f,
				float64(flat.Peak)/float64(flat.Bound), float64(folded.Peak)/float64(flat.Bound))
			if float64(folded.Peak) > 1.1*float64(flat.Bound) {
				t.Errorf("%s: peak %d, bound %d", m.Name, folded.Peak, flat.Bound)
			}
		}
	}
}

// TestEqualIterations has equal iterations, which fold into one.
func TestEqualIterations(t *testing.T) {
	m := layouts.Models(8 << 10)[0]
	m.Layers, m.Microbatches, m.KeepGradients = 8, 40, true
	p := m.Problem()
	f, err := bilevel.FoldRepeats(t.Context(), p, both())
	if err != nil || f.First+f.Second > p.Len()/10 {
		t.Fatalf("%d buffers: %+v: %v", p.Len(), f, err)
	}
	l := solved(t, both(), p)
	t.Logf("%d buffers: %+v, peak %.4f of the bound", p.Len(), f, float64(l.Peak)/float64(l.Bound))
	if float64(l.Peak) > 1.05*float64(l.Bound) {
		t.Errorf("peak %d, bound %d", l.Peak, l.Bound)
	}
}

// solved solves a problem and checks the layout.
func solved(t *testing.T, s dsa.Solver, p *dsa.Problem) dsa.Layout {
	t.Helper()
	start := time.Now()
	l, err := s.Solve(t.Context(), p, dsa.Options{})
	took := time.Since(start)
	if err == nil {
		err = dsa.Check(p, l)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d buffers in %v", p.Len(), took)
	return l
}
