package policy

import (
	"fmt"
	"math"
	"testing"

	"gm/internal/swap"
	"gm/internal/swap/draft"
	"gm/internal/swap/simulate"
)

// BenchmarkPlan makes schedules of a network of 3,002 operators and 1,501 tensors in a part of the memory that it takes when nothing is
// moved, and says how much longer its step is then.
func BenchmarkPlan(b *testing.B) {
	g := transformer(150, 16384)
	_, peak := draft.Over(g.Plain(), 0)
	for _, part := range []float64{0.5, 0.1} {
		limits := swap.Limits{Device: int64(part * float64(peak)), Host: math.MaxInt64, Link: pcie}
		for _, name := range []string{"auto", "joint", "floor", "belady", "dymem", "memo"} {
			p, err := Lookup(name)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%g", name, part), func(b *testing.B) {
				var r *simulate.Result
				for b.Loop() {
					s, err := p.Plan(g, limits)
					if err != nil {
						b.Skip(err)
					}
					if r, err = simulate.Run(g, s.Actions, limits.Link, nil); err != nil {
						b.Fatal(err)
					}
				}
				bound, _ := LowerBound(g, limits)
				b.ReportMetric(float64(r.Step)/float64(g.Compute()), "step/compute")
				b.ReportMetric(float64(bound)/float64(g.Compute()), "bound/compute")
			})
		}
	}
}

func BenchmarkLowerBound(b *testing.B) {
	g := transformer(150, 16384)
	_, peak := draft.Over(g.Plain(), 0)
	for b.Loop() {
		LowerBound(g, swap.Limits{Device: peak / 10, Host: math.MaxInt64, Link: pcie})
	}
}

// BenchmarkPages has so many tensors on the device that looking at all of them for each that is sent away takes long.
func BenchmarkPages(b *testing.B) {
	g := transformer(3000, 1024)
	_, peak := draft.Over(g.Plain(), 0)
	for name, limits := range map[string]swap.Limits{
		"all of the host":  {Device: peak / 2, Host: math.MaxInt64, Link: pcie},
		"half of the host": {Device: 3 * peak / 4, Host: peak / 3, Link: pcie},
	} {
		for _, policy := range []string{"belady", "lru", "latency"} {
			p, err := Lookup(policy)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(policy+" with "+name, func(b *testing.B) {
				for b.Loop() {
					if _, err := p.Plan(g, limits); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
