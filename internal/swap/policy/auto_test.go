package policy

import (
	"math"
	"math/rand/v2"
	"testing"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// TestAutoAmongOthers has limits of the device, and of the host, that are no round amounts: where another policy has a schedule auto has
// one, and none of theirs is faster.
func TestAutoAmongOthers(t *testing.T) {
	for layers := 2; layers <= 4; layers++ {
		g := transformer(layers, 16384)
		_, top := draft.Over(g.Plain(), 0)
		r := rand.New(rand.NewPCG(uint64(layers), 0))
		for i := range 4 {
			l := swap.Limits{Device: g.Least() + r.Int64N(top-g.Least()), Host: math.MaxInt64, Link: pcie}
			if i%2 == 1 {
				l.Host = int64((0.02 + 0.1*r.Float64()) * float64(top-g.Least()))
			}
			made := map[string]*planned{}
			for _, p := range Policies() {
				made[p.Name] = try(t, p, g, l)
			}
			for name, other := range made {
				switch auto := made["auto"]; {
				case other == nil:
				case auto == nil:
					t.Errorf("%d layers, %d bytes and %d of the host: auto has no schedule, %s has", layers, l.Device, l.Host, name)
				case auto.result.Step > other.result.Step:
					t.Errorf("%d layers, %d bytes and %d of the host: auto takes %v, %s %v", layers, l.Device, l.Host, auto.result.Step, name, other.result.Step)
				}
			}
		}
	}
}
