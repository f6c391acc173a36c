package blocks

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
)

// plainFind is grams.find by its definition: the one place in the plan where the last gramSize requests lead to, or else the first step from
// next on, among aheadSteps, to which the last fewRequests lead.
func plainFind(steps []Step, recent []Step, next int32) int32 {
	n := len(steps)
	leads := func(at, count int) bool {
		for k := range count {
			if a, b := recent[len(recent)-1-k], steps[((at-k)%n+n)%n]; a.Size != b.Size || a.Stream != b.Stream {
				return false
			}
		}
		return true
	}
	if len(recent) < gramSize {
		return none
	}
	var places []int32
	for at := range n {
		if leads(at, gramSize) {
			places = append(places, int32(at))
		}
	}
	if len(places) == 1 {
		return places[0]
	}
	for ahead := 0; ahead < aheadSteps && next != none; ahead++ {
		if at := (int(next) + ahead) % n; leads(at, fewRequests) {
			return int32(at)
		}
	}
	return none
}

// TestGramsAgainstDefinition follows plans in which layers are alike, leaves steps out and adds some.
func TestGramsAgainstDefinition(t *testing.T) {
	found := map[bool]int{}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 53))
		var steps []Step
		for layers := 1 + rng.IntN(80); layers > 0; layers-- {
			for i := range 3 + rng.Int64N(6) {
				steps = append(steps, Step{Size: i, Stream: cuda.Stream(rng.IntN(8) / 7)})
			}
		}
		g := newGrams(steps)
		var recent []Step
		at := 0
		for range 400 {
			switch rng.IntN(40) {
			case 0:
				at = rng.IntN(len(steps))
			case 1:
				recent = append(recent, Step{Size: rng.Int64N(9)})
				g.push(recent[len(recent)-1].Size, 0)
			}
			s := steps[at]
			at = (at + 1) % len(steps)
			recent = append(recent, s)
			g.push(s.Size, s.Stream)
			next := int32(rng.IntN(len(steps)))
			if rng.IntN(4) == 0 {
				next = none
			}
			got, want := g.find(next), plainFind(steps, recent, next)
			if got != want {
				t.Fatalf("seed %d: from step %d of %d on, found %d, want %d", seed, next, len(steps), got, want)
			}
			found[got != none]++
		}
	}
	if found[false] < 1000 || found[true] < 1000 {
		t.Errorf("found and not %v: the test is too easy", found)
	}
}
