package exact

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBefore gives the corners' choices, the weights of their sections, and which the search branches at.
func TestBefore(t *testing.T) {
	for _, c := range []struct {
		name          string
		choices       [2]int32
		weights       [2]float64
		first, second bool
	}{
		{name: "fewer choices", choices: [2]int32{2, 3}, weights: [2]float64{1, 1}, first: true},
		{name: "more choices where searches failed", choices: [2]int32{3, 2}, weights: [2]float64{1.8, 1}, first: true},
		{name: "more choices, weight too small", choices: [2]int32{3, 2}, weights: [2]float64{1.4, 1}, second: true},
		{name: "one choice, whatever the weights", choices: [2]int32{1, 2}, weights: [2]float64{1, 9}, first: true},
		{name: "no choice before one", choices: [2]int32{0, 1}, weights: [2]float64{1, 9}, first: true},
		{name: "one choice each: weights do not count", choices: [2]int32{1, 1}, weights: [2]float64{1, 9}},
		{name: "equal quotients", choices: [2]int32{4, 2}, weights: [2]float64{2, 1}},
	} {
		s := &Search{weight: c.weights[:], attempt: Attempt{Weighted: true}}
		a, b := corner{section: 0, choices: c.choices[0]}, corner{section: 1, choices: c.choices[1]}
		if s.before(&a, &b) != c.first || s.before(&b, &a) != c.second {
			t.Errorf("%s: before %v, after %v", c.name, s.before(&a, &b), s.before(&b, &a))
		}
		if s.attempt.Weighted = false; s.before(&a, &b) != (a.choices < b.choices) {
			t.Errorf("%s: weights count where they should not", c.name)
		}
	}
}

// TestWeights checks that failures are counted where they happen, and kept for the next attempt.
func TestWeights(t *testing.T) {
	in := Instance{Lo: []int32{0, 0, 1}, Hi: []int32{1, 2, 2}, Size: []int64{2, 2, 1}, Sections: 2}
	s := New(in)
	for attempt := range 2 {
		if outcome := s.Try(Attempt{Capacity: 3, Rank: []int32{0, 1, 2}, Nodes: 100}); outcome != Fails {
			t.Fatalf("attempt %d: %v", attempt, outcome)
		}
	}
	if math.Abs(s.weight[0]-(1+2*failure)) > 1e-9 || s.weight[1] != 1 {
		t.Errorf("weights %v, expected %g and 1", s.weight, 1+2*failure)
	}
}

// TestForget checks that a search that forgets is like a new one: what it does depends on later attempts alone.
func TestForget(t *testing.T) {
	differ := 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		in := packed(rng, 40, 1000, 120)
		n := len(in.Lo)
		rank := func() (rank []int32) {
			for _, k := range rng.Perm(n) {
				rank = append(rank, int32(k))
			}
			return rank
		}
		first, second := Attempt{Capacity: 1000, Rank: rank(), Nodes: 500, Weighted: true}, Attempt{Capacity: 1000, Rank: rank(), Nodes: 2000, Weighted: true}
		fresh, used, kept := New(in), New(in), New(in)
		used.Try(first)
		used.Forget()
		kept.Try(first)
		want, got := fresh.Try(second), used.Try(second)
		if want != got || fresh.Nodes() != used.Nodes() || fresh.Work() != used.Work() {
			t.Errorf("seed %d: %v after %d nodes, expected %v after %d", seed, got, used.Nodes(), want, fresh.Nodes())
		}
		if kept.Try(second) != want || kept.Nodes() != fresh.Nodes() {
			differ++
		}
	}
	if differ == 0 {
		t.Error("nothing is learned from one attempt to the next")
	}
}
