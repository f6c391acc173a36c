package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// TestPolicies says what each policy does with networks of one operator a layer. Operators take 100 ns, and copies 1 ns a byte.
func TestPolicies(t *testing.T) {
	const most = math.MaxInt64
	for _, test := range []struct {
		policy  string
		types   string
		bytes   int64 // of each tensor
		device  int64
		actions string
	}{
		{"none", "ccccc", 100, 500, ""},
		{"auto", "ccccc", 100, 500, ""},
		{"joint", "ccccc", 100, 500, ""},
		{"quick", "ccccc", 100, 500, ""},
		{"prompt", "ccccc", 100, 500, ""},

		// Everything goes as soon as it is written, and is back one layer ahead. The last tensors have no gap.
		{"all", "ccccc", 100, most, "o0@1 o1@2 f0@2 o2@3 f1@3 f2@4 p2@5 p1@6 p0@7"},
		// Copies that take longer than operators end behind them; all is off by the end of the forward pass.
		{"all", "ccccc", 250, most, "o0@1 o1@2 o2@3 f0@4 f1@5 f2@5 p2@6 p1@6 p0@7"},

		// A barrier behind each layer, both ways.
		{"vdnn-all", "ccccc", 100, most, "o0@1 o1@2 f0@2 o2@3 f1@3 f2@4 p2@5 p1@6 a2@6 p0@7 a1@7 a0@8"},
		{"vdnn-all", "clrlc", 100, most, "o0@1 f0@2 o2@3 f2@4 p2@5 p0@6 a2@6 a0@7"},
		// Of c-l-r-l-c, only the last convolution's input would go, and that has no gap; of c-c-r-p-c the second one's.
		{"vdnn-conv", "clrlc", 100, most, ""},
		{"vdnn-conv", "ccrpc", 100, most, "o0@1 f0@2 p0@5 a0@6"},

		// The search for what to bring back next ends at a convolution, also at one that has all it needs: o1 is back from operator 6 on, and the
		// layers up to its convolution at 9 do not look behind that for o0.
		{"vdnn-conv", "cccrpc", 100, most, "o0@1 o1@2 f0@2 f1@3 p1@6 a1@7 p0@9 a0@10"},
		// Nothing while memory suffices, then inputs of convolutions, then of all layers.
		{"vdnn-dyn", "cccrpc", 100, 500, ""},
		{"vdnn-dyn", "cccrpc", 100, 400, "o0@1 o1@2 f0@2 f1@3 p1@6 a1@7 p0@9 a0@10"},
		{"vdnn-dyn", "cccrpc", 100, 300, "o0@1 o1@2 f0@2 f1@3 o3@4 f3@5 p3@6 p1@7 a3@7 a1@8 p0@9 a0@10"},
		{"vdnn-dyn", "clrlc", 100, 400, ""},
		{"vdnn-dyn", "clrlc", 100, 300, "o0@1 f0@2 o2@3 f2@4 p2@5 p0@6 a2@6 a0@7"},

		// Copies begin with the layers that read; nothing waits until memory is short or the pass ends.
		{"dymem", "ccccc", 100, most, "o0@1 o1@2 f0@2 o2@3 f1@3 f2@4 p2@5 p1@6 p0@7"},
		{"dymem", "ccccc", 250, most, "o0@1 o1@2 o2@3 f0@4 f1@5 f2@5 p2@5 p1@6 p0@7"},
		{"dymem", "ccccc", 250, 750, "o0@1 o1@2 o2@3 f0@3 f1@4 f2@5 p2@5 p1@6 p0@7"},
		{"dymem", "lllll", 100, most, ""},
		// What activations read in the backward pass alone, their output, goes while its first reader runs.
		{"dymem", "lrlrl", 100, most, "o1@2 f1@3 p1@5"},

		// Nothing goes while memory suffices; then what was used longest ago does, and activations are recomputed.
		{"superneurons", "ccccc", 100, 500, ""},
		{"superneurons", "ccccc", 100, 400, "o0@4 f0@4 p0@7"},
		{"superneurons", "cnrcnrc", 100, 500, ""},
		{"superneurons", "cnrcnrc", 100, 400, "f2@4 r1@10 r2@10 f1@10"},
		{"superneurons", "cnrcnrc", 100, 300, "f2@4 o0@5 f0@5 p0@8 r1@10 r2@10 f1@10"},

		// What is brought back first is the largest; all tensors are the same here, so the first.
		{"floor", "ccccc", 100, 400, "o2@3 f2@4 p2@6"},

		{"belady", "ccccc", 100, 400, "o0@1 f0@4 p0@7"},
		{"lru", "ccccc", 100, 400, "o0@1 f0@4 p0@7"},
		{"fifo", "ccccc", 100, 400, "o0@1 f0@4 p0@7"},
		{"latency", "ccccc", 100, 400, "o0@1 f0@4 p0@7"},

		// What is recomputed comes back with what it is computed from, which stays until its own use if there is room, and goes again if not.
		{"dtr", "ccccc", 100, 400, "f0@4 r0@8"},
		{"dtr", "ccccc", 100, 300, "f0@3 f1@4 r0@7 r1@7"},
		{"coop", "ccccc", 100, 400, "f0@4 r0@8"},
		{"coop", "ccccc", 100, 300, "f0@3 f1@4 r0@7 r1@7"},
		{"remat", "ccccc", 100, 500, ""},
		{"remat", "ccccc", 100, 400, "f0@2 r0@8"},
		{"remat", "ccccc", 100, 300, "f0@2 f1@3 r0@7 r1@7"},
		{"remat", "ccccc", 100, 200, "f0@2 f1@3 f2@4 r0@6 r1@6 f0@6 r2@6 r0@8"},

		// Where copies can be hidden nothing is recomputed, where they cannot something is.
		{"joint", "ccccc", 100, 400, "o0@1 f0@2 p0@7"},
		{"joint", "ccccc", 1000, 4000, "f0@2 r0@8"},
		{"auto", "ccccc", 1000, 4000, "f0@2 r0@8"},
	} {
		t.Run(fmt.Sprintf("%s of %s, %d bytes in %d", test.policy, test.types, test.bytes, test.device), func(t *testing.T) {
			g := stack(test.types, 100, test.bytes)
			p, err := Lookup(test.policy)
			if err != nil {
				t.Fatal(err)
			}
			s, err := p.Plan(g, swap.Limits{Device: test.device, Host: most, Link: perByte{}})
			if err != nil {
				t.Fatal(err)
			}
			if got := show(g, s.Actions); got != test.actions {
				t.Errorf("got  %s\nwant %s", got, test.actions)
			}
		})
	}
}

// TestVictims has four tensors of which two stay when a fifth is written: the policies differ in which go.
func TestVictims(t *testing.T) {
	g := &swap.Graph{}
	for range 12 {
		g.Ops = append(g.Ops, swap.Op{Duration: 100, Layer: -1})
	}
	g.Tensors = []swap.Tensor{
		{Bytes: 100, Made: 0, Uses: []int32{3, 8}},
		{Bytes: 100, Made: 1, Uses: []int32{7}},
		{Bytes: 100, Made: 2, Uses: []int32{11}},
		{Bytes: 350, Made: 3, Uses: []int32{9}},
		{Bytes: 100, Made: 4, Uses: []int32{5}},
	}
	for name, first := range map[string]int32{
		"fifo":    0, // came first
		"lru":     1, // was used at 1
		"belady":  2, // is used at 11
		"latency": 3, // 350 bytes for 5 operators, where the third has 100 for 7
	} {
		p, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Plan(g, swap.Limits{Device: 650, Host: math.MaxInt64, Link: perByte{}})
		if err != nil {
			t.Fatal(err)
		}
		frees := slices.DeleteFunc(s.Actions, func(a swap.Action) bool { return a.Kind != swap.Free })
		if len(frees) == 0 || frees[0].Tensor != first || frees[0].At != 4 {
			t.Errorf("%s: %s", name, show(g, frees))
		}
	}
}

// TestMemo compares with section 4.1 of the paper: the fraction of the rows by its closed form, and where layers are swapped.
func TestMemo(t *testing.T) {
	const layers, tokens, hidden = 6, 16384, 4096
	g := transformer(layers, tokens)
	const unit = 2 * tokens * hidden
	// What is swapped: the input and what attention writes, and of others what it reads, its norms' and its linear layers' outputs.
	const input, attention, others = unit, unit, (1 + 3 + 1 + 1 + 4 + 4) * unit
	forward := time.Duration(0)
	for _, p := range parts(tokens) {
		forward += p.took
	}
	for _, test := range []struct {
		bandwidth float64 // bytes a second
		host      int64
	}{
		{10e9, math.MaxInt64}, {40e9, math.MaxInt64}, {400e9, math.MaxInt64}, {400e9, (layers - 2) * (input + attention + others/3)},
	} {
		want := min(1, (test.bandwidth*forward.Seconds()-input-attention)/others, (float64(test.host)/(layers-2)-input-attention)/others)
		p, err := Lookup("memo")
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Plan(g, swap.Limits{Device: math.MaxInt64, Host: test.host, Link: link{0, test.bandwidth, test.bandwidth}})
		if err != nil {
			t.Fatal(err)
		}
		copied, whole := int64(0), int64(0)
		for _, a := range s.Actions {
			x := &g.Tensors[a.Tensor]
			if a.Kind == swap.Offload && x.Role == swap.Inner {
				copied += a.Bytes
				whole += x.Bytes
			}
			if x.Layer >= layers-2 {
				t.Errorf("%v of tensor %d, which is of one of the last two layers", a.Kind, a.Tensor)
			}
			if a.Kind == swap.Offload && !x.Copyable(a.Bytes) {
				t.Errorf("%v of %d bytes", a.Kind, a.Bytes)
			}
			checkMemo(t, g, a)
		}
		if got := float64(copied) / float64(max(1, whole)); math.Abs(got-max(0, want)) > 1e-4 {
			t.Errorf("at %.0f GB/s, %d bytes of host: %.5f of the rows, want %.5f", test.bandwidth/1e9, test.host, got, want)
		}
	}
}

// checkMemo says when an action of MEMO's is not where the paper has it.
func checkMemo(t *testing.T, g *swap.Graph, a swap.Action) {
	layer := g.Tensors[a.Tensor].Layer
	op, before := &g.Ops[a.At], &g.Ops[a.At-1]
	ok := true
	switch a.Kind {
	case swap.Offload: // when the layer has run
		ok = op.Layer == layer+1 && before.Layer != op.Layer
	case swap.Free: // before layer i+2
		ok = op.Phase == swap.Backward || op.Layer == layer+2 && before.Layer != op.Layer
	case swap.Prefetch: // when layer i+2 has run
		ok = op.Layer == layer+1 && before.Layer == layer+2
	case swap.Recompute: // before the layer
		ok = op.Layer == layer && before.Layer == layer+1
	}
	if phase := op.Phase; !ok || (phase == swap.Forward) != (a.Kind == swap.Offload || a.Kind == swap.Free) && a.Kind != swap.Free {
		t.Errorf("%v of tensor %d of layer %d at operator %d of layer %d", a.Kind, a.Tensor, layer, a.At, op.Layer)
	}
}

func TestShortError(t *testing.T) {
	g := stack("ccccc", 100, 100)
	for name, want := range map[string]draft.ShortError{
		"none":     {Policy: "none", Bytes: 150, Op: 4},
		"vdnn-all": {Policy: "vdnn-all", Bytes: 50, Op: 2, Host: true},
		"belady":   {Policy: "belady", Bytes: 50, Op: 4, Host: true},
	} {
		p, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Plan(g, swap.Limits{Device: 350, Host: 150, Link: perByte{}})
		var short *draft.ShortError
		if !errors.As(err, &short) || *short != want {
			t.Errorf("%s: %v, want %v", name, err, &want)
		}
	}
}

func TestLookup(t *testing.T) {
	if _, err := Lookup("best"); err == nil || !strings.Contains(err.Error(), "auto, quick, prompt, joint") {
		t.Error(err)
	}
	for _, p := range Policies() {
		if found, err := Lookup(p.Name); err != nil || found.Name != p.Name || p.About == "" {
			t.Error(p.Name, err)
		}
	}
}
