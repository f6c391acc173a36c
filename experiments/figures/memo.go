package main

import (
	"fmt"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/alpha"
	"gm/internal/swap/network"
	"gm/internal/swap/simulate"
)
var _ = alpha.Solve
// bandwidth is a link of so many bytes a second each way.
type bandwidth float64

func (b bandwidth) OutTime(bytes int64) time.Duration { return time.Duration(float64(bytes) / float64(b) * 1e9) }
func (b bandwidth) InTime(bytes int64) time.Duration  { return b.OutTime(bytes) }

func measureMemo(e *experiment) error {
	link := bandwidth(12e9)
	for _, k := range []int64{64,128,192,256,320,384,512,640,768,896,1024,1152} {
		m, err := network.Build(fmt.Sprintf("gpt-7b,seq=%dK,tp=4,cp=2", k))
		if err != nil { return err }
		am, err := alpha.Of(m.Graph)
		if err != nil { return err }
		a, err := alpha.Solve(am, float64(link), int64(1034e9/8))
		fmt.Printf("%dK fwd %v alpha %.3f %v bw %.3f host %.3f err %v B range %.3g..%.3g\n", k, am.Forward(), a.Alpha, a.Binds, a.ByBandwidth, a.ByHost, err, (float64(am.Input+am.Attention)+.75*float64(am.Others))/am.Forward().Seconds(), (float64(am.Input+am.Attention)+.875*float64(am.Others))/am.Forward().Seconds())
		show := func(name string, acts []swap.Action) error {
			r, err := simulate.Run(m.Graph, acts, link, nil)
			if err != nil { return fmt.Errorf("%s: %w", name, err) }
			fmt.Printf("   %-12s MFU %.4f peak %.2f GB at %s host %.4g stall %v re %v\n", name, m.MFU(r.Step), float64(r.Peak)/1e9, m.Graph.Ops[r.PeakOp].Name, float64(r.Host*8), r.Stalled(), r.Recomputed)
			return nil
		}
		if err := show("recompute", recomputation(m.Graph)); err != nil { return err }
		if err := show("memo", memoSchedule(m.Graph, a.Alpha)); err != nil { return err }
		if k < 400 {
		for i := 0; i <= 8; i++ {
			if err := show(fmt.Sprintf("alpha %.3f", float64(i)/8), memoSchedule(m.Graph, float64(i)/8)); err != nil { return err }
		}
		}
	}
	return nil
}
