package ordering

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gm/internal/order"
	"gm/internal/order/greedy"
	"gm/internal/order/papers"
	"gm/internal/order/solve"
	"gm/internal/plan/check"
	"gm/internal/swap"
)

// random returns a random step with states, changes and places to write over.
func random(rng *rand.Rand, ops int) *swap.Graph {
	g := &swap.Graph{Name: "random", Complete: true, States: []string{"parameter", "random"}}
	for i := range ops {
		op := swap.Op{Name: "op", Phase: swap.Phase(3 * i / ops), Layer: -1, Duration: time.Duration(i), Base: 100 + rng.Int64N(50)}
		if rng.IntN(4) == 0 {
			op.Reads = []int32{rng.Int32N(2)}
		}
		if rng.IntN(8) == 0 {
			op.Changes = []int32{rng.Int32N(2)}
		}
		g.Ops = append(g.Ops, op)
		var used []int32
		for range rng.IntN(3) {
			if len(g.Tensors) == 0 {
				break
			}
			id := rng.IntN(len(g.Tensors))
			if t := &g.Tensors[id]; !slices.Contains(t.Uses, int32(i)) {
				t.Uses = append(t.Uses, int32(i))
				used = append(used, int32(id))
				if rng.IntN(5) == 0 {
					t.Changed = append(t.Changed, int32(i))
				}
			}
		}
		t := swap.Tensor{Name: "t", Bytes: 1 + rng.Int64N(100), Made: int32(i), Layer: -1}
		if len(used) > 0 && rng.IntN(3) == 0 {
			t.Over = used[:1]
		}
		if len(g.Tensors) > 0 && rng.IntN(3) == 0 {
			t.Recompute, t.From = 5, []int32{rng.Int32N(int32(len(g.Tensors)))}
		}
		g.Tensors = append(g.Tensors, t)
	}
	for i := range g.Tensors {
		if t := &g.Tensors[i]; len(t.Uses) == 0 {
			t.Uses = []int32{t.Made}
		}
	}
	return g
}

// TestStep orders random steps by each method: the checker takes the result, and its peak is what the method said.
func TestStep(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		g := random(rng, 1+rng.IntN(40))
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		l := order.Link(Problem(g))
		if err := l.Problem.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, m := range solve.Methods() {
			r, err := m.Find(context.Background(), l, solve.Options{Rounds: 1, States: 1000})
			if errors.Is(err, papers.ErrLarge) {
				continue
			}
			if err != nil {
				t.Fatalf("step %d, %s: %v", i, m.Name, err)
			}
			made := Step(g, r.Order)
			if err := made.Validate(); err != nil {
				t.Fatalf("step %d, %s: %v", i, m.Name, err)
			}
			report, err := check.Order(made, g)
			if err != nil {
				t.Fatalf("step %d, %s: %v", i, m.Name, err)
			}
			if want := r.Peak + Lasting(g); report.After != want || slices.Max(Loads(made)) != want {
				t.Errorf("step %d, %s: peak %d, said to be %d", i, m.Name, report.After, want)
			}
		}
	}
}

// TestChecked breaks orders in many ways: the checker finds each.
func TestChecked(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	found := map[string]int{}
	for range 400 {
		g := random(rng, 30)
		l := order.Link(Problem(g))
		good := greedy.Order(l, greedy.LeastPeak)
		i := rng.IntN(29)
		good[i], good[i+1] = good[i+1], good[i]
		err := l.Check(good)
		made := Step(g, good)
		wrong := made.Validate()
		if wrong == nil {
			_, wrong = check.Order(made, g)
		}
		if err != nil && wrong == nil {
			t.Fatalf("%v was not found", err)
		}
		if err == nil && wrong != nil {
			t.Fatalf("a right order is refused: %v", wrong)
		}
		if wrong != nil {
			for _, kind := range []string{"uses", "state", "changes, expected", "recomputed from"} {
				if strings.Contains(wrong.Error(), kind) {
					found[kind]++
				}
			}
		}
	}
	for _, kind := range []string{"uses", "state", "recomputed from"} {
		if found[kind] == 0 {
			t.Errorf("no error with %q: %v", kind, found)
		}
	}
}

// TestRefused changes a right order.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*swap.Graph){
		"its operators have no origins":                                              func(g *swap.Graph) { g.Origin = nil },
		"operator 1 has the origin 0, which the graph lacks or another operator has": func(g *swap.Graph) { g.Origin[0], g.Origin[1] = 0, 0 },
		"it has 4 operators and 4 tensors, the graph has 5 and 5":                    func(g *swap.Graph) { g.Ops, g.Tensors = g.Ops[:4], g.Tensors[:4] },
		"phase forward, expected": func(g *swap.Graph) {
			for i := range g.Ops {
				g.Ops[i].Phase = swap.Forward
			}
		},
		"it is {Name:other": func(g *swap.Graph) { g.Ops[2].Name = "other" },
		"tensor 3: it is":   func(g *swap.Graph) { g.Tensors[3].Bytes++ },
		"tensor 3: operators [] change it, expected [4]": func(g *swap.Graph) { g.Tensors[3].Changed = nil },
		"it reads or changes other states":               func(g *swap.Graph) { g.Ops[1].Changes = nil },
	} {
		g := &swap.Graph{States: []string{"s"}}
		for i := range int32(5) {
			g.Ops = append(g.Ops, swap.Op{Name: "op", Phase: swap.Phase(i / 2), Changes: []int32{0}, Layer: -1})
			g.Tensors = append(g.Tensors, swap.Tensor{Bytes: 1, Made: i, Uses: []int32{4}, Changed: []int32{4}, Layer: -1})
		}
		made := Step(g, order.Program(5))
		if _, err := check.Order(made, g); err != nil {
			t.Fatal(err)
		}
		change(made)
		if _, err := check.Order(made, g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
