package dsa

import (
	"context"
	"math"
	"math/rand/v2"
)

// anneal looks for the order that gives the lowest peak when each item is placed as low as it can be: simulated
// annealing, as in "A heuristic for periodic memory allocation with little fragmentation to train neural networks"
// (Imanishi and Xu, ISMM 2024), by several chains that begin with different orders.
type anneal struct{}

// Solve implements [Solver].
func (anneal) Solve(ctx context.Context, p *Problem, o Options) (Layout, error) {
	s, err := newSearch(ctx, p, o)
	if err != nil {
		return Layout{}, err
	}
	s.anneal(s.tryOrders(), s.until(s.chainWork()))
	return s.layout()
}

const (
	chains      = 8
	mostWork    = 1 << 28 // without a deadline: blocks that each chain may look at
	workEach    = 1 << 14 // the same for each two items: there is less to find in small problems
	firstSlice  = 1 << 16 // blocks between two looks at what the other chains have come to
	lastSlice   = 1 << 23
	annealItems = 1 << 15 // more items are not annealed: a single move takes too long
)

// chainWork returns how many blocks each chain should look at.
func (s *search) chainWork() int64 {
	n := int64(len(s.m.items))
	return min(mostWork, workEach*n*n)
}

// anneal goes on from the best of the layouts that passes have made, with so much work for each chain.
func (s *search) anneal(starts []start, most int64) {
	for a := s.newAnnealing(starts); a != nil && a.work < most && !s.ended(); {
		a.step()
	}
}

// annealing is chains that have begun with different layouts.
type annealing struct {
	*search
	chains []*annealer
	work   int64 // of each
}

// newAnnealing begins with some layouts, the best first. It returns nil where there is nothing to be found.
func (s *search) newAnnealing(starts []start) *annealing {
	if len(s.m.items) > annealItems || len(starts) == 0 || len(starts[0].order) < 2 || s.ended() {
		return nil
	}
	a := &annealing{search: s, chains: make([]*annealer, chains)}
	s.each(chains, func(i int) {
		a.chains[i] = s.newAnnealer(starts[i%len(starts)], uint64(i))
	})
	return a
}

// step lets all chains work for a while, as long again as they have until now.
func (a *annealing) step() {
	a.work += min(lastSlice, max(firstSlice, a.work))
	a.each(len(a.chains), func(i int) { a.chains[i].run(a.work, a.ctx) })
	for _, c := range a.chains {
		a.offer(c.best, c.least, "anneal")
	}
}

// annealer is a chain that cools down, again and again, each time for twice as long.
type annealer struct {
	*chain
	rng     *rand.Rand
	bound   float64 // units: the unit of the cost
	hottest float64
	begin   int64 // the work done when the present cycle began
	cycle   int64 // the work of the present cycle
	tops    []int32
}

func (s *search) newAnnealer(from start, number uint64) *annealer {
	a := &annealer{
		chain: newChain(s.m, from, s.goal()), rng: rand.New(rand.NewPCG(s.o.Seed, number)),
		bound: float64(s.bound), hottest: hottest(number), cycle: max(1, s.chainWork()/64),
	}
	a.placed.looked = 0
	return a
}

// hottest returns the temperature that the cycles of a chain begin with, in the unit of cost: no one suits all problems.
func hottest(number uint64) float64 { return [...]float64{0.004, 0.015, 0.06}[number%3] }

// coldest is the temperature that a cycle ends with, as a part of that it begins with.
const coldest = 0.01

// moveWork is how many blocks are looked at between two looks at the time and the temperature.
const moveWork = 1 << 13

// run makes moves until so much work is done in all.
func (a *annealer) run(work int64, ctx context.Context) {
	for a.placed.looked < work && a.least > a.goal && ctx.Err() == nil {
		done := a.placed.looked - a.begin
		if done >= a.cycle {
			a.begin, a.cycle, done = a.placed.looked, 2*a.cycle, 0
		}
		heat := a.hottest * math.Pow(coldest, float64(done)/float64(a.cycle))
		for next := a.placed.looked + moveWork; a.placed.looked < next; a.placed.looked++ {
			a.move(heat)
		}
	}
}

// move gives an item that matters another turn.
func (a *annealer) move(heat float64) {
	from, to := int(a.position[a.critical()]), a.rng.IntN(len(a.order))
	if from != to {
		a.try(from, to, a.cost, a.cost(a.peak, a.above[len(a.above)-1])-heat*math.Log(a.rng.Float64()))
	}
}

// cost is the peak and how far an item is above the goal on average, in parts of the bound.
func (a *annealer) cost(peak, above int64) float64 {
	return (float64(peak) + float64(above)/float64(len(a.order))) / a.bound
}

// critical picks an item that reaches the peak, or one of those that it rests upon, further and further down. Where
// only fixed items reach it, it picks any.
func (a *annealer) critical() int32 {
	a.tops = a.tops[:0]
	for _, i := range a.order {
		if a.base[i]+a.m.items[i].top == a.peak {
			a.tops = append(a.tops, i)
		}
	}
	x := a.order[a.rng.IntN(len(a.order))]
	for len(a.tops) > 0 {
		x = a.tops[a.rng.IntN(len(a.tops))]
		if a.rng.IntN(4) == 0 {
			break
		}
		a.supports(x)
	}
	return x
}

// supports fills tops with the items that an item rests upon.
func (a *annealer) supports(x int32) {
	a.tops = a.tops[:0]
	for i := range a.m.of(x) {
		r := &a.m.of(x)[i]
		offset := a.base[x] + r.low
		blocks := a.placed.around(r)
		below := blocks[:blocks.seek(offset)]
		a.placed.looked += int64(len(below))
		for k := range below {
			b := &below[k]
			if b.lo < r.hi && b.hi > r.lo && b.end > offset-a.m.items[x].step && a.position[b.item] >= 0 && b.item != x {
				a.tops = append(a.tops, b.item)
			}
		}
	}
}
