package dsa

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkOrder is one pass in the order of a skyline, and in the order of size.
func BenchmarkOrder(b *testing.B) {
	for _, layers := range []int{200, 4000} {
		p := training(rand.New(rand.NewPCG(7, 7)), 1, layers)
		p.Period = p.End[0]
		m := newModel(p)
		bounds, never := m.bounds(), func(int64) bool { return false }
		for name, order := range map[string][]int32{"skyline-A": m.byLayout(skylineBy{"A"}, never), "ZW": m.byKey(bounds, "ZW")} {
			b.Run(fmt.Sprintf("%d/%s", p.Len(), name), func(b *testing.B) {
				for b.Loop() {
					newPass(m, order).run(m, never)
				}
			})
		}
	}
}

// BenchmarkAnneal does the same work on one core and on two.
func BenchmarkAnneal(b *testing.B) {
	p := crowded(rand.New(rand.NewPCG(3, 3)), 300)
	for workers := 1; workers <= 2; workers++ {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			for b.Loop() {
				s, err := newSearch(b.Context(), p, Options{Workers: workers})
				if err != nil {
					b.Fatal(err)
				}
				starts := s.tryOrders()
				before := s.peak
				s.anneal(starts, 1<<24)
				b.ReportMetric(100*(float64(before)/float64(s.bound)-1), "%over-before")
				b.ReportMetric(100*(float64(s.peak)/float64(s.bound)-1), "%over")
			}
		})
	}
}
