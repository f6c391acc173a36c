package policy

import (
	"math"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/simulate"
	"gm/internal/swap/store"
)

// TestPaced makes schedules of recorded steps whose program takes a fifth longer to launch operators than they last, and time for each action. Those that count
// on it are faster than those that do not, and have fewer actions.
func TestPaced(t *testing.T) {
	us := time.Microsecond
	for _, name := range []string{"gpt2xl", "bert", "swin", "vit"} {
		recorded, err := store.ReadGraph("../../../testdata/steps/" + name + ".parquet")
		if err != nil {
			t.Fatal(err)
		}
		plain := recorded.Graph
		paced := *plain
		paced.Ops, paced.Tensors = slices.Clone(plain.Ops), slices.Clone(plain.Tensors)
		last := len(plain.Ops) - 1
		for i := range last {
			paced.Ops[i].Launch = (plain.Compute() - plain.Ops[last].Duration) * 6 / 5 / time.Duration(last)
		}
		for i := range paced.Tensors {
			paced.Tensors[i].Relaunch = 180 * us
		}
		paced.Handling = swap.Handling{swap.Offload: 60 * us, swap.Free: 20 * us, swap.Prefetch: 70 * us, swap.Await: 10 * us, swap.Settle: 10 * us}
		l := swap.Limits{Host: math.MaxInt64, Link: pcie}
		for _, used := range plain.Plain() {
			l.Device = max(l.Device, used*7/10)
		}
		p, err := Lookup("prompt")
		if err != nil {
			t.Fatal(err)
		}
		run := func(g *swap.Graph) *simulate.Result {
			s, err := p.Plan(g, l)
			if err != nil {
				t.Fatal(err)
			}
			r, err := simulate.Run(&paced, s.Actions, l.Link, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		knows, other := run(&paced), run(plain)
		t.Logf("%s: steps of %v with %d actions, %v with %d by one that does not know", name, knows.Step, knows.Actions, other.Step, other.Actions)
		if knows.Step >= other.Step || 10*knows.Actions > 7*other.Actions {
			t.Errorf("%s: not faster, or with more than seven tenths of the actions", name)
		}
	}
}
