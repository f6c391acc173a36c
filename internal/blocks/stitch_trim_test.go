package blocks

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// plainUnused returns the mappings outside of main regions at whose addresses is no block and nothing is offered, by their definition.
func (s *Stitch) plainUnused() (unused []int32) {
	for id := range s.mappings {
		m := &s.mappings[id]
		if m.region == none || s.regions[m.region].main {
			continue
		}
		piece := &s.pieces[m.piece]
		used := piece.used > 0 && piece.home == int32(id)
		for i := range s.places {
			p := &s.places[i]
			used = used || p.state != placeFree && p.ptr < m.ptr+cuda.Ptr(piece.size) && m.ptr < p.ptr+cuda.Ptr(p.size)
		}
		if !used {
			unused = append(unused, int32(id))
		}
	}
	return unused
}

// trimming is what a call of Stitch.trim found and did.
type trimming struct {
	listed []int32         // mappings that were found before and are still unused, in order
	stale  int             // those that are not
	undone map[int32]int64 // when each was last used
	settle bool            // warm blocks were joined with the free memory
}

// trimBy calls trim as if there were one mapping a piece and excess more.
func trimBy(t *testing.T, s *Stitch, excess int) *trimming {
	x := &trimming{undone: map[int32]int64{}}
	unused := s.plainUnused()
	for _, o := range s.oldest {
		if slices.Contains(unused, o.id) && s.mappings[o.id].used == o.used {
			x.listed = append(x.listed, o.id)
		} else {
			x.stale++
		}
	}
	for id := range s.mappings {
		if s.mappings[id].region != none {
			x.undone[int32(id)] = s.mappings[id].used
		}
	}
	before, aliases := s.mapped, s.conf.Aliases
	pieces := len(s.pieces) - len(s.spare.pieces)
	s.conf.Aliases, s.mapped = 1, pieces+excess
	if err := s.trim(); err != nil {
		t.Fatal(err)
	}
	s.conf.Aliases, s.mapped = aliases, before-(pieces+excess-s.mapped)
	for id := range x.undone {
		if s.mappings[id].region != none {
			delete(x.undone, id)
		}
	}
	if len(x.undone) != before-s.mapped {
		t.Fatalf("%d mappings were undone, but %d are counted", len(x.undone), before-s.mapped)
	}
	x.settle = !slices.ContainsFunc(s.places, func(p place) bool { return p.state == placeWarm })
	return x
}

// check compares what trim did with what it should. It may undo excess mappings, of those found before in their order, and then of all others
// those that were used least recently. It lists a tenth of the limit.
func (x *trimming) check(t *testing.T, s *Stitch, excess int) {
	known := min(excess, len(x.listed))
	for i, id := range x.listed {
		if _, undone := x.undone[id]; i < known && !undone || len(x.listed) >= excess && undone != (i < known) {
			t.Fatalf("of %d mappings that were found before, number %d is undone: %v, with %d too many", len(x.listed), i, undone, excess)
		}
	}
	if more := known < excess; x.settle != more || len(x.undone) > excess {
		t.Fatalf("all mappings were looked through: %v; %d were undone of %d too many, %d were found before", x.settle, len(x.undone), excess, known)
	} else if !more {
		return
	}
	left := s.plainUnused()
	first := int64(1 << 62)
	for _, id := range left {
		first = min(first, s.mappings[id].used)
	}
	for id, used := range x.undone {
		if !slices.Contains(x.listed, id) && used > first {
			t.Fatalf("a mapping last used at %d was undone, and not one last used at %d", used, first)
		}
	}
	if len(x.undone) < excess && len(left) > 0 {
		t.Fatalf("%d mappings were undone of %d too many, and %d are unused", len(x.undone), excess, len(left))
	}
	tenth := (len(s.pieces) - len(s.spare.pieces)) / 10
	if want := min(len(left), max(tenth-(excess-known), 0)); len(s.oldest) != want {
		t.Fatalf("%d mappings are listed for the next time, want %d", len(s.oldest), want)
	}
}

// TestTrim undoes mappings now and then, while blocks come and go.
func TestTrim(t *testing.T) {
	var few, enough, stale, more int
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 71))
		dev := sim.New(0, sim.CostTable{})
		s, err := NewStitch(dev, StitchConf{PieceMin: 2 << 20, PieceMax: 2 << 20, Pieces: 32, Parts: 4, Aliases: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		v := &viewing{t: t, rng: rng, dev: dev, a: s}
		for range 600 {
			v.random()
			if rng.IntN(50) == 0 { // another stream takes some pieces and leaves them idle
				p, err := s.Malloc(40*plainUnit, 3, 0)
				if err == nil {
					err = s.Free(p)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if rng.IntN(8) > 0 {
				continue
			}
			v.pass()
			v.free(len(v.blocks)-1, false)
			excess := rng.IntN(12)
			x := trimBy(t, s, excess)
			x.check(t, s, excess)
			stale += x.stale
			switch {
			case len(x.undone) < excess:
				few++
			case len(x.listed) >= excess:
				enough++
			default:
				more++
			}
		}
	}
	if min(few, enough, stale, more) < 10 {
		t.Errorf("%d times too few were unused, %d times enough were known, %d times more were needed, %d were not unused any more: "+
			"the test is too easy", few, enough, more, stale)
	}
}
