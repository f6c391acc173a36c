package orders

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gm/internal/dsa/dsatest"
	"gm/internal/dsa/heuristic"
	"gm/internal/dsa/rigid"
)

// BenchmarkOrder measures one pass in the order of a skyline, and one in the order of size.
func BenchmarkOrder(b *testing.B) {
	for _, layers := range []int{200, 4000} {
		p := dsatest.Training(rand.New(rand.NewPCG(7, 7)), 1, layers)
		p.Period = p.End[0]
		m := rigid.New(p)
		items, never := bounds(m), func(int64) bool { return false }
		for name, order := range map[string][]int32{"skyline-A": byLayout(m, heuristic.SkylineBy("A"), never), "ZW": byKey(m, items, "ZW")} {
			b.Run(fmt.Sprintf("%d/%s", p.Len(), name), func(b *testing.B) {
				for b.Loop() {
					rigid.NewPass(m, order).Run(m, never)
				}
			})
		}
	}
}
