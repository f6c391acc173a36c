package alpha

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"gm/internal/models/graphs"
	"gm/internal/swap"
)

const kibi = 1 << 10

// gpt7b is a layer of MEMO's 7B on one of eight GPUs that compute so many FLOP/s: 16bsh numbers of two bytes, 24bsh^2 + 2bs^2h FLOPs.
func gpt7b(tokens int64, rate float64) Model {
	const layers, h, gpus = 32, 4096, 8
	unit := 2 * tokens * h / gpus
	time := func(flops float64) time.Duration { return time.Duration(flops / gpus / rate * 1e9) }
	s := float64(tokens)
	return Model{Layers: layers, Input: unit, Attention: unit, Others: 14 * unit, Linear: time(24 * s * h * h), Quadratic: time(2 * s * s * h)}
}

// tableFive is where MEMO's table 5 has no host memory left: the values of alpha, in eighths, from which that is so.
var tableFive = []struct{ tokens, eighths int64 }{{192 * kibi, 9}, {256 * kibi, 9}, {320 * kibi, 7}, {384 * kibi, 5}}

// TestTableFive reproduces all 36 cells of MEMO's table 5. One size of host memory explains those that run out of it. The table leaves
// some 8 GB of that size open; 30 buffers of 4 GiB for each of 8 GPUs, the most in powers of two that 2 TB hold, lie within. One ratio of
// bandwidth and arithmetic explains the alphas of the highest MFU, 0.75 at 192K and 1 at 256K.
func TestTableFive(t *testing.T) {
	const rate = 160e12
	for _, host := range []float64{1.0309e12, 1.0387e12, 8 * 30 * 4 << 30} {
		for _, row := range tableFive {
			m := gpt7b(row.tokens, rate)
			for eighths := range int64(9) {
				r, err := Solve(m, 1e15, int64(host/8))
				if err != nil {
					t.Fatal(err)
				}
				if fits, want := float64(eighths)/8 <= r.ByHost, eighths < row.eighths; fits != want {
					t.Errorf("%.4g bytes, %dK tokens, alpha %d/8: fits is %v, want %v", host, row.tokens/kibi, eighths, fits, want)
				}
			}
		}
	}
	for _, ratio := range []float64{5.15e-5, 5.79e-5} { // bytes for each FLOP
		for tokens, want := range map[int64]float64{192 * kibi: 0.75, 256 * kibi: 1} {
			r, err := Solve(gpt7b(tokens, rate), ratio*rate, math.MaxInt64)
			if got := math.Floor(r.Alpha*8) / 8; err != nil || got != want {
				t.Errorf("%g bytes for each FLOP, %dK tokens: alpha %.3f, %v, want %g", ratio, tokens/kibi, r.Alpha, err, want)
			}
		}
	}
}

// TestH200 holds the arithmetic of one GPU at 400 TFLOP/s and a hidden size of 4096, by tokens and bandwidth: alpha, and from which sequence on
// everything hides.
func TestH200(t *testing.T) {
	const rate = 400e12
	whole := func(tokens int64) Model { // of a layer on one GPU
		m := gpt7b(tokens, rate/8)
		m.Input, m.Attention, m.Others = 8*m.Input, 8*m.Attention, 8*m.Others
		return m
	}
	for _, row := range []struct {
		bandwidth float64
		alphas    [5]float64 // at 4K, 8K, 16K, 32K and 64K
		hides     float64    // in units of 1024 tokens
	}{
		{50e9, [5]float64{0.33, 0.37, 0.44, 0.59, 0.88}, 77},
		{25e9, [5]float64{0.09, 0.11, 0.15, 0.22, 0.37}, 202},
	} {
		for i, want := range row.alphas {
			tokens := int64(4*kibi) << i
			r, err := Solve(whole(tokens), row.bandwidth, math.MaxInt64)
			if err != nil || math.Abs(r.Alpha-want) > 0.006 || r.Binds != Bandwidth {
				t.Errorf("%g B/s, %d tokens: alpha %.3f, %v binds, %v; want %.2f", row.bandwidth, tokens, r.Alpha, r.Binds, err, want)
			}
			m := whole(tokens)
			if times, ok := m.Hides(row.bandwidth); !ok || math.Abs(times*float64(tokens)/kibi-row.hides) > 0.5 {
				t.Errorf("%g B/s: from %d tokens it takes %.3f times as many to hide all, want %gK", row.bandwidth, tokens, times, row.hides)
			}
		}
	}
	for tokens, feasible := range map[int64]bool{14 * kibi: false, 15 * kibi: true} {
		_, err := Solve(whole(tokens), 12.5e9, math.MaxInt64)
		if infeasible := (*InfeasibleError)(nil); errors.As(err, &infeasible) == feasible {
			t.Errorf("12.5 GB/s, %d tokens: %v", tokens, err)
		}
	}
}

// TestGroups holds the part of what a layer of Llama 3 8B saves, 136 KiB a token, that hides at 50 GB/s and 400 TFLOP/s.
func TestGroups(t *testing.T) {
	const h, saved = 4096, 136 * kibi
	const products = 2 * (2*h*h + 2*h*1024 + 3*h*14336)
	for tokens, want := range map[int64]float64{8 * kibi: 0.45, 32 * kibi: 0.63, 64 * kibi: 0.87} {
		s := float64(tokens)
		m := Model{
			Layers: 32, Input: 2 * h * tokens, Attention: 2 * h * tokens, Others: (saved - 4*h) * tokens,
			Linear: time.Duration(products * s / 400e3), Quadratic: time.Duration(2 * h * s * s / 400e3),
		}
		r, err := Solve(m, 50e9, math.MaxInt64)
		if got := (4*h + r.Alpha*(saved-4*h)) / saved; err != nil || math.Abs(got-want) > 0.006 {
			t.Errorf("%d tokens: %.3f hides, %v, want %.2f", tokens, got, err, want)
		}
	}
}

func TestSolve(t *testing.T) {
	layer := func(layers int) Model {
		return Model{Layers: layers, Input: 10, Attention: 10, Others: 100, Linear: 30 * time.Second, Quadratic: 40 * time.Second}
	}
	for name, test := range map[string]struct {
		model     Model
		bandwidth float64
		host      int64
		want      Result
		err       string
	}{
		"all":                {layer(12), 2, 1200, Result{1, None, 1.2, 1, 1200}, ""},
		"bandwidth":          {layer(12), 1, 1200, Result{0.5, Bandwidth, 0.5, 1, 700}, ""},
		"host":               {layer(12), 1, 500, Result{0.3, HostMemory, 0.5, 0.3, 500}, ""},
		"stalls":             {layer(12), 0.2, 500, Result{0, Bandwidth, -0.06, 0.3, 0}, "take 100 s to copy, its forward pass 70 s"},
		"does not fit":       {layer(12), 1, 150, Result{0, HostMemory, 0.5, -0.05, 0}, "take 200 bytes of host memory, of 150"},
		"two layers keep it": {layer(2), 2, 0, Result{1, None, 1.2, 1, 0}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Solve(test.model, test.bandwidth, test.host)
			r.ByBandwidth, r.ByHost = round(r.ByBandwidth), round(r.ByHost)
			if r != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %+v, %v, want %+v, %s", r, err, test.want, test.err)
			}
		})
	}
}

func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

func TestHides(t *testing.T) {
	m := Model{Input: 10, Attention: 10, Others: 80, Linear: 30 * time.Second, Quadratic: 35 * time.Second}
	if times, ok := m.Hides(1); !ok || round(times) != 2 {
		t.Errorf("got %v, %v", times, ok)
	}
	if times, ok := m.Hides(4); !ok || times != 0 {
		t.Errorf("with a link that always hides all: %v, %v", times, ok)
	}
	m.Quadratic = 0
	if _, ok := m.Hides(1); ok {
		t.Error("nothing grows, but copies hide")
	}
}

// TestOf takes the model from graphs.
func TestOf(t *testing.T) {
	n, err := graphs.Build("gpt-7b,seq=192K,tp=4,cp=2")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Of(n.Graph)
	if want := gpt7b(192*kibi, 1); err != nil || m.Layers != 32 || m.Input != want.Input || m.Attention != want.Attention || m.Others != want.Others {
		t.Errorf("got %+v, %v, want the bytes of %+v", m, err, want)
	}
	if m.Quadratic < 2*m.Linear || m.Quadratic > 5*m.Linear {
		t.Errorf("attention takes %v, all else %v", m.Quadratic, m.Linear)
	}
	if _, err := Of(&swap.Graph{Tensors: []swap.Tensor{{Layer: math.MaxInt32}}}); err == nil {
		t.Error("one tensor is in many layers")
	}
	for _, spec := range []string{"alexnet", "resnet-32"} {
		n, err := graphs.Build(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Of(n.Graph); err == nil {
			t.Errorf("%s has equal layers", spec)
		}
	}
}
