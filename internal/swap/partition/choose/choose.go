// Package choose searches for the choice of what a compiled graph saves that takes the least time within a limit of memory.
//
//	choose.go   the search: from two choices down to the limit, then better ones by small changes
//	change.go   the changes of a choice, the best first
package choose

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"gm/internal/swap/partition"
)

const (
	// enough is how many operators a search looks at to better a choice, and most how many it looks at to find one. The first takes about a
	// tenth of a second.
	enough, most = 30_000_000, 400_000_000
	// halvings is how often the least memory is looked for between the limit and a choice, where none keeps to the limit.
	halvings = 6
	// shaken is how many values are changed at random before the search goes on from there, and rounds how often for each value.
	shaken, rounds = 4, 50
	seed           = 1
	none           = -1 // no value
)

// Answer returns the best choice that is found for a request. If none keeps to the limit, it is one that takes little.
func Answer(r *partition.Request) (*partition.Answer, error) {
	given, err := r.Marks(r.Saved)
	if err != nil {
		return nil, err
	}
	s := newSearch(r)
	before := s.cost(given)
	best := &choice{given, before}
	if before.Over > 0 {
		best = s.best(given, r.Limit)
		if best.cost.Over > 0 {
			best = s.shake(best)
		}
		if best.cost.Over > 0 {
			best = s.least(given, best)
		}
		best = s.shake(s.improve(best))
	}
	a := &partition.Answer{Saved: []int32{}, Peak: best.cost.Peak, NS: best.cost.NS, Before: before.Peak}
	s.cost(best.saved)
	for v, is := range best.saved {
		if is && s.machine.Needs(int32(v)) {
			a.Saved = append(a.Saved, int32(v))
		}
	}
	return a, nil
}

// choice is what is saved, and what that costs.
type choice struct {
	saved []bool
	cost  partition.Cost
}

// better reports whether a choice keeps to the limit and another one does not, or which takes less time if both do, and less memory if none.
func (c *choice) better(than *choice) bool {
	if c.cost.Over > 0 || than.cost.Over > 0 {
		return c.cost.Over == 0 || than.cost.Over > 0 && c.cost.Peak < than.cost.Peak
	}
	return c.cost.NS < than.cost.NS
}

func (c *choice) clone() *choice { return &choice{slices.Clone(c.saved), c.cost} }

type search struct {
	r       *partition.Request
	limit   int64
	machine *partition.Machine
	free    []int32 // values of the forward pass that can be saved or recomputed
	seen    int64   // operators that were looked at
	size    int64   // of them in a run, about
	random  *rand.Rand
}

func newSearch(r *partition.Request) *search {
	s := &search{r: r, limit: r.Limit, machine: partition.NewMachine(&r.Problem), random: rand.New(rand.NewPCG(seed, 0))}
	s.size = int64(len(r.Ops) + len(r.Values))
	for i := range r.Ops {
		s.size += int64(len(r.Ops[i].Reads))
		for _, v := range r.Ops[i].Makes {
			if i < r.Forward && r.Ops[i].Able && !r.Values[v].Barred {
				s.free = append(s.free, v)
			}
		}
	}
	return s
}

func (s *search) cost(saved []bool) partition.Cost {
	s.seen += s.size
	return s.machine.Run(saved, s.limit)
}

// ns returns how long the operator takes that makes a value.
func (s *search) ns(v int32) int64 { return s.r.Ops[s.machine.Maker(v)].NS }

// best returns the better of two choices for a limit: that to which changes lead from what there was, and from saving everything.
func (s *search) best(given []bool, limit int64) *choice {
	s.limit = limit
	best := s.from(slices.Clone(given))
	all := make([]bool, len(given))
	for _, v := range s.free {
		all[v] = true
	}
	if other := s.from(all); other.better(best) {
		best = other
	}
	return best
}

// from returns the choice to which the best single changes lead. What cannot be recomputed is saved, which costs nothing where it is not
// needed: so every choice of the search can be run.
func (s *search) from(saved []bool) *choice {
	for i := range s.r.Ops[:s.r.Forward] {
		for _, v := range s.r.Ops[i].Makes {
			saved[v] = saved[v] || !s.r.Ops[i].Able
		}
	}
	c := &choice{saved: saved}
	s.prune(c)
	s.shrink(c, none)
	s.fill(c)
	return c
}

// least looks for a choice that takes as little as can be found, where one is known that takes more than the limit.
func (s *search) least(given []bool, known *choice) *choice {
	low, high := s.limit, known.cost.Peak
	for range halvings {
		limit := low + (high-low)/2
		if c := s.best(given, limit); c.cost.Over > 0 {
			low = limit
		} else {
			known, high = c, c.cost.Peak
		}
	}
	s.limit = high
	known.cost = s.cost(known.saved)
	return known
}

// improve saves one more value, makes room for it elsewhere, and keeps what is better: again and again, the dearest first.
func (s *search) improve(best *choice) *choice {
	for changed := true; changed; {
		changed = false
		var dear []int32
		for _, v := range s.free {
			if !best.saved[v] && s.ns(v) > 0 {
				dear = append(dear, v)
			}
		}
		slices.SortStableFunc(dear, func(a, b int32) int { return cmp.Compare(s.ns(b), s.ns(a)) })
		for _, v := range dear {
			if best.saved[v] {
				continue
			}
			if s.seen > enough {
				return best
			}
			c := best.clone()
			c.saved[v] = true
			s.prune(c)
			if c.cost.NS >= best.cost.NS {
				continue
			}
			s.shrink(c, v)
			s.fill(c)
			if c.better(best) {
				best, changed = c, true
			}
		}
	}
	return best
}

// shake changes some values at random, again and again, and goes on from there. It keeps what is better. Where the choice does not keep to the
// limit, it ends with the first that does.
func (s *search) shake(best *choice) *choice {
	over, until := best.cost.Over > 0, s.seen+enough/2
	for range rounds * len(s.free) {
		if best.cost.Over == 0 && (over || best.cost.NS == 0) || s.seen > until {
			break
		}
		c := best.clone()
		at := s.random.IntN(len(s.free)) // values that are made one after the other change together
		for range 1 + s.random.IntN(shaken) {
			v := s.free[min(at+s.random.IntN(2*shaken), len(s.free)-1)]
			c.saved[v] = !c.saved[v]
		}
		s.prune(c)
		s.shrink(c, none)
		s.fill(c)
		if c.better(best) {
			best = c
		}
	}
	return best
}
