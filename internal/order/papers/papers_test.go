package papers

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"gm/internal/order"
	"gm/internal/order/ordertest"
)

// TestROAM orders random problems.
func TestROAM(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		l := order.Link(ordertest.Random(rng, 1+rng.IntN(25)))
		if err := l.Check(ROAM(context.Background(), l)); err != nil {
			t.Fatalf("problem %d: %v", i, err)
		}
	}
}

// training returns a step of layers: forward operators that each keep an activation, backward operators that read it and make a gradient, and
// at the end updates that read the gradients.
func training(layers int32, activation, gradient int64) *order.Problem {
	n := 3 * layers
	p := &order.Problem{Temp: make([]int64, n), Phases: make([]int8, n)}
	for i := range layers {
		forward, backward, update := i, 2*layers-1-i, 2*layers+i
		p.Phases[backward], p.Phases[update] = 1, 2
		kept := order.Tensor{Bytes: activation, Ops: []int32{forward, backward}}
		if i+1 < layers {
			kept.Ops = []int32{forward, forward + 1, backward}
		}
		passed := order.Tensor{Bytes: 1, Ops: []int32{backward}}
		if i > 0 {
			passed.Ops = append(passed.Ops, backward+1)
		}
		p.Tensors = append(p.Tensors, kept, passed, order.Tensor{Bytes: gradient, Ops: []int32{backward, update}})
	}
	for i := range p.Tensors {
		slices.Sort(p.Tensors[i].Ops)
		p.Tensors[i].Ops = slices.Compact(p.Tensors[i].Ops)
	}
	return p
}

// TestUpdates has updates behind their gradients where activations leave room for them, and only there.
func TestUpdates(t *testing.T) {
	for name, test := range map[string]struct {
		gradient int64
		want     []int32
	}{
		// At the first backward operator all activations are there, so its update waits.
		"small gradients": {1, []int32{0, 1, 2, 3, 4, 7, 5, 6, 8}},
		// Three times 20 bytes fit beside 50 of the three times 50 bytes.
		"larger gradients": {20, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		"too large":        {40, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}},
	} {
		l := order.Link(training(3, 50, test.gradient))
		if err := l.Problem.Validate(); err != nil {
			t.Fatal(err)
		}
		made, problem := earlyUpdates(l)
		if err := errors.Join(l.Check(made), problem.Validate()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(made, test.want) {
			t.Errorf("%s: %v, want %v", name, made, test.want)
		}
	}
}

// TestKeyPoints compares them with those by the whole relation.
func TestKeyPoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	total := 0
	for i := range 500 {
		l := order.Link(ordertest.Random(rng, 1+rng.IntN(12)))
		n := l.Problem.Ops()
		program := order.Program(n)
		var want []int
		for op := range int32(n - 1) {
			if count(op, &l.Preds, n)+count(op, &l.Succs, n) == n-1 {
				want = append(want, int(op)+1)
			}
		}
		if got := keyPoints(l, program); !slices.Equal(got, want) {
			t.Errorf("problem %d: %v, want %v", i, got, want)
		}
		total += len(want)
	}
	if total < 100 {
		t.Errorf("only %d key points", total)
	}
}

func TestMODeL(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		l := order.Link(ordertest.Random(rng, 1+rng.IntN(8)))
		made, err := MODeL(context.Background(), l, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if peak, _ := order.Peak(l.Loads(made)); peak != ordertest.Least(l) {
			t.Errorf("problem %d: peak %d, the least is %d", i, peak, ordertest.Least(l))
		}
	}
	large := order.Link(ordertest.Random(rng, 300))
	if _, err := MODeL(context.Background(), large, 1); !errors.Is(err, ErrLarge) {
		t.Errorf("of 300 operators: %v", err)
	}
	if _, err := MODeL(context.Background(), order.Link(ordertest.Random(rng, 40)), 2); !errors.Is(err, ErrLarge) {
		t.Errorf("with 2 sets: %v", err)
	}
}

// TestProgram has glpsol solve programs: their optimum is the least peak of all orders.
func TestProgram(t *testing.T) {
	if _, err := exec.LookPath("glpsol"); err != nil {
		t.Skip("glpsol is not installed")
	}
	rng := rand.New(rand.NewPCG(7, 8))
	optimum := regexp.MustCompile(`(?m)^s mip \d+ \d+ o (\S+)$`)
	for i := range 25 {
		p := ordertest.Random(rng, 2+rng.IntN(5))
		for j := range p.Tensors {
			p.Tensors[j].Over = nil
		}
		l := order.Link(p)
		var text bytes.Buffer
		if err := WriteProgram(&text, l); err != nil {
			t.Fatal(err)
		}
		model, solution := filepath.Join(t.TempDir(), "model.lp"), filepath.Join(t.TempDir(), "solution")
		if err := os.WriteFile(model, text.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command("glpsol", "--lp", model, "--write", solution).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, said, text.Bytes())
		}
		found, _ := os.ReadFile(solution)
		match := optimum.FindSubmatch(found)
		if match == nil {
			t.Fatalf("problem %d: no optimum\n%s", i, text.Bytes())
		}
		peak, err := strconv.ParseFloat(string(match[1]), 64)
		if want := ordertest.Least(l); err != nil || int64(peak+0.5) != want {
			t.Errorf("problem %d: %s, want %d\n%s", i, match[1], want, text.Bytes())
		}
	}
}
