package anneal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/orders"
	"gm/internal/dsa/rigid"
)

func TestChainIsAPass(t *testing.T) {
	for seed := range uint64(101) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 2 + rng.IntN(80)
		if seed == 100 {
			n = 10_000 // with shelves of several levels
		}
		p := dsatest.Involved(rng, n, dsatest.Feature(seed)%(dsatest.WithAll+1), 50)
		s, err := orders.New(t.Context(), p, dsa.Options{})
		if err != nil {
			t.Fatal(err)
		}
		starts := s.Try()
		c := newChain(s.Model, starts[0], s.Bound)
		for range 50 {
			if len(c.Order) < 2 {
				break
			}
			limit := float64(c.Peak) * (0.9 + 0.2*rng.Float64())
			c.try(rng.IntN(len(c.Order)), rng.IntN(len(c.Order)), func(peak, _ int64) float64 { return float64(peak) }, limit)
			again := rigid.NewPass(s.Model, c.Order)
			again.Run(s.Model, func(int64) bool { return false })
			if !slices.Equal(again.Base, c.Base) || again.Peak != c.Peak {
				t.Fatalf("seed %d: bases %v with a peak of %d, expected %v with %d", seed, c.Base, c.Peak, again.Base, again.Peak)
			}
		}
	}
}

func TestSameSeedSameLayout(t *testing.T) {
	for seed := range uint64(3) {
		p := dsatest.Crowded(rand.New(rand.NewPCG(seed, 3)), 100)
		var first dsa.Layout
		for workers := 1; workers <= 3; workers++ {
			s, _ := orders.New(t.Context(), p, dsa.Options{Seed: seed, Workers: workers})
			Improve(s, s.Try(), 1<<16)
			l, err := s.Layout()
			if err != nil || dsa.Check(p, l) != nil {
				t.Fatal(err, dsa.Check(p, l))
			}
			if workers == 1 {
				first = l
			} else if l.Method != first.Method || !slices.Equal(l.Offsets, first.Offsets) {
				t.Errorf("seed %d: peak %d by %s on %d workers, %d by %s on one", seed, l.Peak, l.Method, workers, first.Peak, first.Method)
			}
		}
	}
}

// BenchmarkAnneal does the same work on one core and on two.
func BenchmarkAnneal(b *testing.B) {
	p := dsatest.Crowded(rand.New(rand.NewPCG(3, 3)), 300)
	for workers := 1; workers <= 2; workers++ {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			for b.Loop() {
				s, err := orders.New(b.Context(), p, dsa.Options{Workers: workers})
				if err != nil {
					b.Fatal(err)
				}
				starts := s.Try()
				before := s.Peak
				Improve(s, starts, 1<<24)
				b.ReportMetric(100*(float64(before)/float64(s.Bound)-1), "%over-before")
				b.ReportMetric(100*(float64(s.Peak)/float64(s.Bound)-1), "%over")
			}
		})
	}
}
