package gmswap

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gm/internal/swap"
	"gm/internal/swap/store"
)

// activation is the size of a tensor of the programs' networks. A backward operator may take as much within itself.
const activation = 64 * 256 * 4

// TestComplete records all that a step does, and moves nothing. What the driver's memory held at each operator's peak is the tensors that
// live then and the parameters, to the byte.
func TestComplete(t *testing.T) {
	for name, want := range map[string]struct {
		module, parameter string
		inPlace           bool
	}{
		"plain":       {"blocks.1 ", "blocks.0.up", false},
		"siamese":     {"blocks.1 ", "blocks.0.up", false},
		"retained":    {"blocks.1 ", "blocks.0.up", false},
		"accumulated": {"blocks.1 ", "blocks.0.up", false},
		"inplace":     {"", "weights.0", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, said := complete(t, name)
			if !g.Complete || len(said) > 0 {
				t.Errorf("complete: %t, and it said %q", g.Complete, said)
			}
			checkMemory(t, g)
			if !slices.ContainsFunc(g.Ops, func(o swap.Op) bool { return o.Phase == swap.Forward && strings.HasPrefix(o.Name, want.module) }) {
				t.Errorf("no operator has the path %q", want.module)
			}
			inForward := func(op int32) bool { return g.Ops[op].Phase == swap.Forward }
			changed := slices.ContainsFunc(g.Tensors, func(x swap.Tensor) bool { return slices.ContainsFunc(x.Changed, inForward) })
			if changed != want.inPlace {
				t.Errorf("the forward pass changes tensors in place: %t", changed)
			}
			if updated := updated(t, g); !slices.Contains(updated, "parameter "+want.parameter) {
				t.Errorf("changed are %q", updated)
			}
		})
	}
}

// TestNotComplete records a program that is compiled in part.
func TestNotComplete(t *testing.T) {
	if g, said := complete(t, "parts"); g.Complete || len(said) != 1 || !strings.HasPrefix(said[0], "gmswap: the graph is not complete: ") {
		t.Errorf("complete: %t, and it said %q", g.Complete, said)
	}
}

// TestNoGraph trains in a mode that the program has for itself. It comes out as it does without the hook.
func TestNoGraph(t *testing.T) {
	s := newSession(t)
	file := filepath.Join(s.dir, "g.parquet")
	_, said := s.same("watching", "auto", "GMSWAP_ALL=1", "GMSWAP_RECORD="+file)
	s.says(said, []string{"gmswap: no graph: the program looks at operators by itself (a TorchDispatchMode)"})
	if _, err := os.Stat(file); err == nil {
		t.Error("there is a graph")
	}
}

// complete returns the complete graph of a program that comes out as it does without the hook, and what the hook said.
func complete(t *testing.T, name string) (*swap.Graph, []string) {
	t.Helper()
	s := newSession(t)
	file := filepath.Join(s.dir, "g.parquet")
	f, said := s.same(name, "auto", "GMSWAP_ALL=1", "GMSWAP_RECORD="+file)
	if f.Served {
		t.Errorf("the hook did %+v", f)
	}
	g, err := store.ReadGraph(file)
	if err != nil {
		t.Fatal(err)
	}
	return g.Graph, said
}

func checkMemory(t *testing.T, g *swap.Graph) {
	t.Helper()
	var phases [3]int
	for i, o := range g.Ops {
		phases[o.Phase]++
		own := o.Base - g.Ops[0].Base
		if own != 0 && (o.Phase != swap.Backward || own != activation) {
			t.Errorf("operator %d, %s: %d bytes beside the tensors and the parameters", i, o.Name, own)
		}
	}
	if slices.Contains(phases[:], 0) {
		t.Errorf("%d operators of the phases", phases)
	}
}

// updated returns the states that the update changes. Nothing else changes any.
func updated(t *testing.T, g *swap.Graph) []string {
	t.Helper()
	var names []string
	for i, o := range g.Ops {
		for _, state := range o.Changes {
			names = append(names, g.States[state])
			if o.Phase != swap.Update {
				t.Errorf("operator %d, %s, changes %s", i, o.Name, g.States[state])
			}
		}
	}
	return names
}
