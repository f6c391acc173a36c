package page

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFlameOverTime compares the flame graph over a range with a walk through the events: for each kind, the bytes that live at each
// position times how much of the range it takes, in rows and in seconds.
func TestFlameOverTime(t *testing.T) {
	for _, name := range []string{"snapshots/gpt2.pickle.gz", "captures/opt1.3b.parquet", "resnet152-V.parquet"} { // the second without stacks
		t.Run(name, func(t *testing.T) {
			r := recording(t, name)
			tab, p := open(t, desk, r), r.parts[0]
			tab.Eval("viewers[0].choose('flame', 'range'), 1", nil)
			rng := rand.New(rand.NewPCG(1, 2))
			for _, axis := range []string{"rows", "seconds"} {
				var span float64
				tab.Eval("viewers[0].choose('axis', '"+axis+"'), viewers[0].span", &span)
				for i := range 3 {
					from, to := 0.0, span
					if i > 0 {
						from = span * 0.8 * rng.Float64()
						to = from + 0.2*span*rng.Float64()
					}
					var got struct {
						From, To, Root float64
						Weights        []float64
					}
					tab.Eval(fmt.Sprintf("viewers[0].set(%f, %f), viewers[0].flame.show(), 1", from, to), nil)
					tab.Eval(`(({ from, to, flame }) => ({ From: from, To: to, Root: flame.root.weight, Weights: [...flame.weighRange()] }))(viewers[0])`, &got)
					want, all := p.weigh(axis, got.From, got.To), 0.0
					for k := range want {
						all += want[k]
						if math.Abs(got.Weights[k]-want[k]) > 1e-6*max(want[k], 1) {
							t.Fatalf("%s %v to %v: kind %d is %v, want %v", axis, got.From, got.To, k, got.Weights[k], want[k])
						}
					}
					if all == 0 || math.Abs(got.Root-all) > 1e-6*all {
						t.Errorf("%s %v to %v: the frames are %v, want %v", axis, got.From, got.To, got.Root, all)
					}
				}
			}
		})
	}
}

// weigh returns, by kind, the bytes at each position times how much of the range the position takes.
func (p *part) weigh(axis string, from, to float64) []float64 {
	begins := func(position int) float64 { // where a position begins on the axis
		switch {
		case position == 0:
			return 0
		case axis == "rows" && position > len(p.events):
			return float64(p.rows)
		case axis == "rows":
			return float64(p.rowAt(int32(position)))
		case position > len(p.events):
			return float64(p.endNS - p.startNS)
		}
		return float64((p.events[position-1].timeNS - p.startNS) / p.tick() * p.tick())
	}
	live, sums := make([]int64, len(p.kinds)), make([]float64, len(p.kinds))
	for position := range len(p.events) + 1 {
		if position > 0 {
			e := p.events[position-1]
			t := p.tensors[e.tensor]
			if size := p.kinds[t.kind].size; int(t.born) == position-1 {
				live[t.kind] += size
			} else {
				live[t.kind] -= size
			}
		}
		wide := min(begins(position+1), to) - max(begins(position), from)
		for k := range live {
			sums[k] += float64(live[k]) * max(wide, 0)
		}
	}
	return sums
}

// TestFlameSwitch: the menu chooses between the moment and the range, which the graph then follows.
func TestFlameSwitch(t *testing.T) {
	tab := open(t, desk, recording(t, "captures/oom.parquet"))
	if about := textOf(tab, ".range"); about != "" {
		t.Errorf("at the moment: %q", about)
	}
	tab.Eval(`(() => { const menu = document.querySelector("[data-choose=flame]"); menu.value = "range"; menu.dispatchEvent(new Event("input")); })()`, nil)
	tab.Settle()
	whole := textOf(tab, ".range")
	if !strings.HasPrefix(whole, "Rows 0 to 31,271: ") || !strings.Contains(whole, "GiB on average, ") || !strings.Contains(whole, "·rows.") {
		t.Errorf("over all: %q", whole)
	}
	tab.Mouse(".flame canvas", 100, 28, "move")
	tab.Settle()
	if tip := textOf(tab, ".flame .tip"); !strings.Contains(tip, " on average, ") || !strings.Contains(tip, "%") {
		t.Errorf("the tip says %q", tip)
	}
	tab.Eval("viewers[0].choose('iteration', 1)", nil)
	tab.Wait("document.querySelector('.range').innerText.startsWith('Rows 6,941 to 11,621: ')")
	tab.Eval("viewers[0].choose('axis', 'seconds')", nil)
	tab.Wait("document.querySelector('.range').innerText.includes('·s.')")
	if seconds := textOf(tab, ".range"); !strings.Contains(seconds, " ms: ") {
		t.Errorf("in seconds: %q", seconds)
	}
	tab.Eval("viewers[0].choose('flame', 'moment'), viewers[0].act('peak')", nil)
	tab.Settle()
	var same bool
	if tab.Eval("viewers[0].flame.root.weight === viewers[0].tensors.live[viewers[0].moment]", &same); !same || textOf(tab, ".range") != "" {
		t.Error("the flame graph is not of the moment again")
	}
}
