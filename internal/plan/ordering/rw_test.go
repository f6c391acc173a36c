package ordering

import (
	"context"
	"gm/internal/models/randwire"
	"gm/internal/order"
	"gm/internal/order/downsets"
	"gm/internal/order/greedy"
	"gm/internal/order/mincut"
	"testing"
	"time"
)

func TestRW(t *testing.T) {
	for _, n := range []int{40} {
		var sp, sl, so, sb float64
		var worst time.Duration
		var sum time.Duration
		maxs := 0
		for seed := range uint64(30) {
			p := Problem(randwire.Graph(n, 4, .75, 1, seed))
			l := order.Link(p)
			pk := func(o []int32) int64 { v, _ := order.Peak(l.Loads(o)); return v }
			prog := pk(order.Program(p.Ops()))
			lp := pk(greedy.Order(l, greedy.LeastPeak))
			s := time.Now()
			c := mincut.NewCutter(l)
			lb := int64(0)
			for op := range int32(p.Ops()) {
				lb = max(lb, c.Bound(op))
			}
			o, r := downsets.Search(context.Background(), l, order.Program(p.Ops()), 0, p.Ops(), downsets.Limits{Enough: lb, Below: min(prog, lp), States: 3000000})
			opt := min(prog, lp)
			if r == downsets.Found {
				opt = pk(o)
			} else if r == downsets.GaveUp {
				t.Log("gave up", seed)
			}
			d := time.Since(s)
			sum += d
			worst = max(worst, d)
			sp += float64(prog)
			sl += float64(lp)
			so += float64(opt)
			sb += float64(lb)
			_ = maxs
		}
		t.Logf("n %d: program %.1f lpmf %.1f opt %.1f bound %.1f mean %v worst %v", n, sp/30, sl/30, so/30, sb/30, sum/30, worst)
	}
}
