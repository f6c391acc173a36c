package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/simulate"
)

// link is a latency and a bandwidth each way.
type link struct {
	latency time.Duration
	out, in float64 // bytes a second
}

func (l link) OutTime(bytes int64) time.Duration {
	return l.latency + time.Duration(float64(bytes)/l.out*1e9)
}
func (l link) InTime(bytes int64) time.Duration {
	return l.latency + time.Duration(float64(bytes)/l.in*1e9)
}

// pcie is about the bandwidth of PCIe 5 with 16 lanes.
var pcie = link{20 * time.Microsecond, 50e9, 50e9}

// randomGraph makes a graph with branches, tensors of many uses, some that cannot be recomputed, some that see their last use in the
// forward pass. Unit makes all tensors of one size.
func randomGraph(r *rand.Rand, ops, tensors int, unit bool) *swap.Graph {
	g := &swap.Graph{Name: "random"}
	forward, update := ops*(30+r.IntN(40))/100, ops-r.IntN(3)
	for op := range ops {
		o := swap.Op{Duration: time.Duration(r.IntN(2000)), Layer: -1, Base: int64(r.IntN(300)), Type: swap.OpType(r.IntN(10))}
		if op >= forward {
			o.Phase = swap.Backward
		}
		if op >= update {
			o.Phase = swap.Update
		}
		if r.IntN(8) > 0 {
			o.Layer = int32(min(op, ops-1-op) / 3)
		}
		if unit {
			o.Base = 0
		}
		g.Ops = append(g.Ops, o)
	}
	for range tensors {
		t := swap.Tensor{Bytes: 1 + int64(r.IntN(4000)), Made: int32(r.IntN(ops)), Role: swap.Role(r.IntN(3))}
		if r.IntN(3) == 0 {
			t.Bytes *= 10
		}
		if unit {
			t.Bytes = 1000
		}
		t.Layer = g.Ops[t.Made].Layer
		for range 1 + r.IntN(4) {
			t.Uses = append(t.Uses, t.Made+int32(r.IntN(ops-int(t.Made))))
		}
		if int(t.Made) < forward && r.IntN(4) > 0 {
			t.Uses = append(t.Uses, max(t.Made, int32(ops-1)-t.Made))
		}
		slices.Sort(t.Uses)
		t.Uses = slices.Compact(t.Uses)
		g.Tensors = append(g.Tensors, t)
	}
	for i := range g.Tensors {
		t := &g.Tensors[i]
		if r.IntN(3) == 0 {
			continue
		}
		t.Recompute = time.Duration(1 + r.IntN(2000))
		if i%4 == 0 && !unit {
			t.Scratch = t.Bytes / int64(1+i%3)
		}
		if rows := 1 + r.Int64N(min(64, t.Bytes)); r.IntN(2) == 0 && (!unit || t.Bytes%rows == 0) {
			t.Row = t.Bytes / rows
			t.Bytes = t.Row * rows
		}
		for range r.IntN(3) {
			if from := int32(r.IntN(tensors)); int(from) != i && g.Tensors[from].Made <= t.Made {
				t.From = append(t.From, from)
			}
		}
	}
	if err := g.Validate(); err != nil {
		panic(err)
	}
	return g
}

// part is an operator of a layer.
type part struct {
	kind   swap.OpType
	took   time.Duration
	width  int64 // of what it writes, in hidden sizes
	reads  []int // parts of the layer that it reads, and above the layer's input
	behind []int // what its backward pass reads
}

// above stands for the input of a layer among its parts.
const above = -1

// parts are those of a layer of a transformer of a hidden size of 4,096 on a device of 400 TFLOP/s and 3 TB/s.
func parts(tokens int64) []part {
	const hidden = 4096
	matmul := func(width float64) time.Duration {
		return time.Duration(2 * float64(tokens) * hidden * hidden * width / 400e12 * 1e9)
	}
	pass := func(units float64) time.Duration { return time.Duration(units * float64(2*tokens*hidden) / 3e12 * 1e9) }
	attention := time.Duration(2 * float64(tokens) * float64(tokens) * hidden / 300e12 * 1e9)
	return []part{
		{swap.Norm, pass(2), 1, []int{above}, []int{above}},
		{swap.Linear, matmul(3), 3, []int{0}, []int{0}},
		{swap.Attention, attention, 1, []int{1}, []int{1, 2}},
		{swap.Linear, matmul(1), 1, []int{2}, []int{2}},
		{swap.Join, pass(3), 1, []int{above, 3}, nil},
		{swap.Norm, pass(2), 1, []int{4}, []int{4}},
		{swap.Linear, matmul(4), 4, []int{5}, []int{5}},
		{swap.Activation, pass(8), 4, []int{6}, []int{6}},
		{swap.Linear, matmul(4), 1, []int{7}, []int{7}},
		{swap.Join, pass(3), 1, []int{4, 8}, nil},
	}
}

// transformer is a network of so many layers of 10 operators a pass, and as many tensors.
func transformer(layers int, tokens int64) *swap.Graph {
	const hidden = 4096
	unit := 2 * tokens * hidden
	all := parts(tokens)
	n := len(all)
	g := &swap.Graph{Name: fmt.Sprintf("transformer of %d layers", layers)}
	g.Ops = append(g.Ops, swap.Op{Name: "embed", Duration: time.Millisecond, Layer: -1, Base: unit})
	g.Tensors = append(g.Tensors, swap.Tensor{Name: "embedding", Bytes: unit, Role: swap.LayerInput})
	output := func(layer, part int) int32 { return int32(layer*n + part + 1) } // above: what the layer before writes last
	for layer := range layers {
		for i, p := range all {
			t := swap.Tensor{Bytes: p.width * unit, Made: int32(len(g.Ops)), Layer: int32(layer), Recompute: p.took, Row: p.width * 2 * hidden}
			for _, j := range p.reads {
				t.From = append(t.From, output(layer, j))
				g.Tensors[output(layer, j)].Uses = append(g.Tensors[output(layer, j)].Uses, t.Made)
			}
			switch {
			case p.kind == swap.Attention:
				t.Role = swap.AttentionOut
			case i == n-1:
				t.Role, t.Layer = swap.LayerInput, int32(layer)+1
			}
			g.Tensors = append(g.Tensors, t)
			g.Ops = append(g.Ops, swap.Op{Type: p.kind, Layer: int32(layer), Duration: p.took, Base: unit})
		}
	}
	last := &g.Tensors[output(layers, above)]
	last.Uses = append(last.Uses, int32(len(g.Ops)))
	g.Ops = append(g.Ops, swap.Op{Name: "loss", Duration: time.Millisecond, Layer: -1, Base: 2 * unit, Phase: swap.Backward})
	for layer := layers - 1; layer >= 0; layer-- {
		for _, p := range slices.Backward(all) {
			for _, j := range p.behind {
				t := &g.Tensors[output(layer, j)]
				t.Uses = append(t.Uses, int32(len(g.Ops)))
			}
			g.Ops = append(g.Ops, swap.Op{Type: p.kind, Layer: int32(layer), Duration: 2 * p.took, Base: (1 + p.width) * unit, Phase: swap.Backward})
		}
	}
	return g
}

// swapLimits are limits of the device alone. Copies take 1 ns a byte.
func swapLimits(device int64) swap.Limits {
	return swap.Limits{Device: device, Host: math.MaxInt64, Link: perByte{}}
}

// waitsOf returns how long the compute stream waits for each tensor of a schedule.
func waitsOf(t *testing.T, p *problem, actions []swap.Action) map[int32]time.Duration {
	t.Helper()
	waits := map[int32]time.Duration{}
	_, err := simulate.Run(p.Graph, actions, p.Limits.Link, func(s simulate.Span) {
		if s.Wait {
			waits[s.Tensor] += s.End - s.Begin
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return waits
}
