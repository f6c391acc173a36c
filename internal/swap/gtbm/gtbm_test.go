package gtbm_test

import (
	"testing"

	"gm/internal/dsa"
	"gm/internal/models/graphs"
	"gm/internal/swap"
	"gm/internal/swap/gtbm"
	"gm/internal/swap/lifetimes"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
)

func TestGroupOf(t *testing.T) {
	g := &swap.Graph{
		Ops: []swap.Op{
			{Type: swap.Conv}, {Type: swap.Linear}, {Type: swap.Conv}, {Type: swap.Conv}, {Type: swap.Join}, {Type: swap.Join, Phase: swap.Backward},
			{Type: swap.Conv, Phase: swap.Backward},
		},
		Tensors: []swap.Tensor{
			{Made: 0, Uses: []int32{2, 3, 6}}, // of a fork
			{Made: 1, Uses: []int32{2}},       // of a linear layer
			{Made: 2, Uses: []int32{4, 6}},    // waits for a join
			{Made: 3, Uses: []int32{4, 6}},    // does not wait for it
		},
	}
	for name, test := range map[string]struct {
		stay lifetimes.Stay
		want gtbm.Group
	}{
		"fork":                       {lifetimes.Stay{Tensor: 0, First: 0}, gtbm.Temporary},
		"linear":                     {lifetimes.Stay{Tensor: 1, First: 1}, gtbm.Reclaimed},
		"waits":                      {lifetimes.Stay{Tensor: 2, First: 2}, gtbm.Temporary},
		"back for the backward pass": {lifetimes.Stay{Tensor: 2, First: 6}, gtbm.Movable},
		"joined at once":             {lifetimes.Stay{Tensor: 3, First: 3}, gtbm.Movable},
		"parameters":                 {lifetimes.Stay{Tensor: -1, First: -1, Until: 7}, gtbm.Reclaimed},
		"gradient":                   {lifetimes.Stay{Tensor: -1, First: 4, Until: 6}, gtbm.Movable},
		"gradient of branches":       {lifetimes.Stay{Tensor: -1, First: 4, Until: 7}, gtbm.Temporary},
	} {
		if got := gtbm.GroupOf(g, &test.stay); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// beside is a graph and what lives beside its tensors: with First -1 reclaimed, in two operators movable, else temporary.
func beside(all ...lifetimes.Beside) (*swap.Graph, *lifetimes.Step, error) {
	g := &swap.Graph{Ops: make([]swap.Op, 16)}
	step, err := lifetimes.Of(g, nil, all)
	return g, step, err
}

// TestPlace has the groups reach their most at different times: 30 low and 10 high, then 10 and 20.
func TestPlace(t *testing.T) {
	g, step, err := beside(
		lifetimes.Beside{Bytes: 100, Made: -1, Last: 16}, lifetimes.Beside{Bytes: 10, Made: 0, Last: 5},
		lifetimes.Beside{Bytes: 30, Made: 1, Last: 2}, lifetimes.Beside{Bytes: 10, Made: 4, Last: 5}, lifetimes.Beside{Bytes: 10, Made: 4, Last: 6},
	)
	if err != nil {
		t.Fatal(err)
	}
	for beta, main := range map[int64]int64{0: 40, 5: 45} {
		p, err := gtbm.Place(t.Context(), g, step, 1, beta)
		if err != nil {
			t.Fatal(err)
		}
		if p.Main != main || p.Incremental != 100 || p.Ends != [gtbm.Groups]int64{30, 20, 100} || p.MainLoad != 40 || p.IncrementalLoad != 100 {
			t.Errorf("beta %d: %+v", beta, p)
		}
		for i, want := range []int64{0, main - 10, 0, 0, main - 20} {
			if p.Offset[i] != want {
				t.Errorf("beta %d: stay %d at %d, want %d", beta, i, p.Offset[i], want)
			}
		}
	}
}

func TestNetworks(t *testing.T) {
	for _, spec := range []string{"alexnet,batch=4", "resnet-32,batch=4", "inception-v4,batch=1", "gpt-7b,layers=2,seq=4Ki"} {
		m, err := graphs.Build(spec)
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Lookup("dymem")
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Plan(m.Graph, swap.Limits{Device: 1 << 40, Host: 1 << 40, Link: link.Default()})
		if err != nil {
			t.Fatal(err)
		}
		step, err := lifetimes.Of(m.Graph, s.Actions, lifetimes.OfBase(m.Graph))
		if err != nil {
			t.Fatal(err)
		}
		check(t, m.Graph, step, 512, 0)
	}
}

// check places a step, and checks that nothing shares a byte with what lives at the same time, and that the main space is as small as it can
// be without the groups at its ends being placed anew.
func check(t *testing.T, g *swap.Graph, step *lifetimes.Step, align, beta int64) {
	t.Helper()
	p, err := gtbm.Place(t.Context(), g, step, align, beta)
	if err != nil {
		t.Fatal(err)
	}
	var spaces [2]lifetimes.Step
	layouts := [2]dsa.Layout{}
	least := int64(0)
	for i, s := range step.Stays {
		at := 0
		if p.Group[i] == gtbm.Reclaimed {
			at = 1
		}
		spaces[at].Stays = append(spaces[at].Stays, s)
		layouts[at].Offsets = append(layouts[at].Offsets, p.Offset[i])
		layouts[at].Peak = max(layouts[at].Peak, p.Offset[i]+up(s.Bytes, align))
		least = max(least, meeting(p, step, i, align))
	}
	for at := range spaces {
		if err := dsa.Check(spaces[at].Problem(align), layouts[at]); err != nil {
			t.Errorf("space %d: %v", at, err)
		}
	}
	if layouts[0].Peak > p.Main || layouts[1].Peak != p.Incremental {
		t.Errorf("spaces end at %d and %d: %+v", layouts[0].Peak, layouts[1].Peak, p)
	}
	if p.Main != least+up(beta, align) {
		t.Errorf("a main space of %d, want %d", p.Main, least+up(beta, align))
	}
	if p.MainLoad > p.Main || p.IncrementalLoad > p.Incremental {
		t.Errorf("less than what lives at once: %+v", p)
	}
}

// meeting returns how much of the main space is taken from both ends when a stay begins.
func meeting(p *gtbm.Pool, step *lifetimes.Step, i int, align int64) int64 {
	low, high, now := int64(0), int64(0), step.Stays[i].From
	for k, s := range step.Stays {
		switch {
		case s.From > now || s.End <= now:
		case p.Group[k] == gtbm.Movable:
			low = max(low, p.Offset[k]+up(s.Bytes, align))
		case p.Group[k] == gtbm.Temporary:
			high = max(high, p.Main-p.Offset[k])
		}
	}
	return low + high
}

func up(bytes, align int64) int64 { return (bytes + align - 1) / align * align }

func FuzzPlace(f *testing.F) {
	f.Add([]byte{0, 0, 9, 1, 2, 3, 4, 5, 6, 0, 15, 200, 3, 1, 30})
	f.Add([]byte{1, 7, 255, 15, 40, 1, 1, 3, 1, 2, 1, 2, 1, 5, 8, 0, 9, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 {
			return
		}
		align, beta := [...]int64{1, 2, 8, 512}[data[0]%4], int64(data[1])
		var all []lifetimes.Beside
		for data = data[2:]; len(data) >= 3 && len(all) < 64; data = data[3:] {
			b := lifetimes.Beside{Bytes: 1 + int64(data[2]), Made: int32(data[0]%17) - 1}
			b.Last = min(max(b.Made, 0)+int32(data[1]%16), 15)
			all = append(all, b)
		}
		g, step, err := beside(all...)
		if err != nil {
			t.Fatal(err)
		}
		check(t, g, step, align, beta)
	})
}
