package layouts

import (
	"reflect"
	"testing"
)

// TestPlanted checks that the pieces of every kind and of every change lie in the rectangle and do not meet, and that seeds tell problems apart.
func TestPlanted(t *testing.T) {
	kinds := map[string]func(seed uint64) *Planted{
		"cut": Cut, "heaped": Heaped,
		"mutated": func(seed uint64) *Planted { return Cut(seed).Mutated(Heaped(seed), seed) },
	}
	for kind, make := range kinds {
		for seed := range uint64(12) {
			l := make(seed)
			checkPieces(t, kind, seed, l)
			p := l.Problem(seed)
			if err := p.Validate(); err != nil || p.Len() < 10 || greatestLoad(p) > PlantedCapacity {
				t.Errorf("%s, seed %d: %d buffers, a load of %d: %v", kind, seed, p.Len(), greatestLoad(p), err)
			}
			if !reflect.DeepEqual(p, make(seed).Problem(seed)) || reflect.DeepEqual(p, make(seed+1).Problem(seed)) {
				t.Errorf("%s, seed %d: it does not tell problems apart, or not only it", kind, seed)
			}
		}
	}
}

func checkPieces(t *testing.T, kind string, seed uint64, l *Planted) {
	t.Helper()
	for k, p := range l.pieces {
		if p.empty() || p.start < 0 || p.end > plantedMoments || p.low < 0 || p.high > plantedHeight {
			t.Fatalf("%s, seed %d: piece %+v", kind, seed, p)
		}
		for _, q := range l.pieces[:k] {
			if p.meets(q) {
				t.Fatalf("%s, seed %d: %+v meets %+v", kind, seed, p, q)
			}
		}
	}
}

// TestChanges makes each change of a layout of three pieces.
func TestChanges(t *testing.T) {
	const m = plantedMoments
	for _, c := range []struct {
		name   string
		change func(l *Planted)
		want   []piece
	}{
		{"mirrored", (*Planted).mirror, []piece{{m - 10, m, 0, 5}, {m - 20, m - 10, 0, 5}, {0, 5, 2, 9}}},
		{"rotated", func(l *Planted) { l.rotate(3) }, []piece{{3, 13, 0, 5}, {13, 23, 0, 5}, {m - 2, m, 2, 9}, {0, 3, 2, 9}}},
		{"merged", func(l *Planted) { l.merge(&Planted{[]piece{{0, 30, 4, 6}, {5, 9, 0, 1}, {8, 40, 7, 8}}}, 9) },
			[]piece{{0, 10, 0, 5}, {10, 30, 4, 6}, {10, 40, 7, 8}}},
	} {
		l := &Planted{[]piece{{0, 10, 0, 5}, {10, 20, 0, 5}, {m - 5, m, 2, 9}}}
		if c.change(l); !reflect.DeepEqual(l.pieces, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, l.pieces, c.want)
		}
	}
}
