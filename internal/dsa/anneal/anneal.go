// Package anneal improves a layout by simulated annealing of the order in which its items are placed.
//
//   - anneal.go: the solver, its chains and their temperatures
//   - chain.go: one chain, which places anew only the items that a change affects
package anneal

import (
	"context"
	"math"
	"math/rand/v2"

	"gm/internal/dsa"
	"gm/internal/dsa/orders"
	"gm/internal/dsa/rigid"
)

// Solver looks for the order that gives the lowest peak when each item is placed as low as possible. It uses simulated
// annealing, as in "A heuristic for periodic memory allocation with little fragmentation to train neural networks"
// (Imanishi and Xu, ISMM 2024), with several chains that begin with different orders.
type Solver struct{}

// Solve implements [dsa.Solver].
func (Solver) Solve(ctx context.Context, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	s, err := orders.New(ctx, p, o)
	if err != nil {
		return dsa.Layout{}, err
	}
	Improve(s, s.Try(), s.WorkLimit(Work(s.Model)))
	return s.Layout()
}

const (
	chains     = 8
	mostWork   = 1 << 28 // without a deadline: blocks that each chain may visit
	workEach   = 1 << 14 // the same, per pair of items: small problems need less
	firstSlice = 1 << 16 // blocks between two comparisons of the chains
	lastSlice  = 1 << 23
	MaxItems   = 1 << 15 // more items are not annealed: a single move takes too long
)

// Work returns how many blocks each chain should visit.
func Work(m *rigid.Model) int64 {
	n := int64(len(m.Items))
	return min(mostWork, workEach*n*n)
}

// Improve anneals the best of the layouts that passes have made; most is the work of each chain.
func Improve(s *orders.Search, starts []orders.Start, most int64) {
	for a := New(s, starts); a != nil && a.Work < most && !s.Ended(); {
		a.Step()
	}
}

// Annealing is a set of chains that began with different layouts.
type Annealing struct {
	*orders.Search
	chains []*annealer
	Work   int64 // of each
}

// New returns chains that begin with the given layouts, the best first. It returns nil if annealing cannot improve them.
func New(s *orders.Search, starts []orders.Start) *Annealing {
	if len(s.Model.Items) > MaxItems || len(starts) == 0 || len(starts[0].Order) < 2 || s.Ended() {
		return nil
	}
	a := &Annealing{Search: s, chains: make([]*annealer, chains)}
	s.Each(chains, func(i int) {
		a.chains[i] = newAnnealer(s, starts[i%len(starts)], uint64(i))
	})
	return a
}

// Step doubles the work of all chains, within limits.
func (a *Annealing) Step() {
	a.Work += min(lastSlice, max(firstSlice, a.Work))
	a.Each(len(a.chains), func(i int) { a.chains[i].run(a.Work, a.Ctx) })
	for _, c := range a.chains {
		a.Offer(c.best, c.least, "anneal")
	}
}

// annealer is a chain that cools down again and again, each time over twice as much work.
type annealer struct {
	*chain
	rng     *rand.Rand
	bound   float64 // units: the unit of the cost
	hottest float64
	begin   int64 // the work done when the current cycle began
	cycle   int64 // the work of the current cycle
	tops    []int32
}

func newAnnealer(s *orders.Search, from orders.Start, number uint64) *annealer {
	a := &annealer{
		chain: newChain(s.Model, from, s.Goal()), rng: rand.New(rand.NewPCG(s.Options.Seed, number)),
		bound: float64(s.Bound), hottest: hottest(number), cycle: max(1, Work(s.Model)/64),
	}
	a.Placed.Visited = 0
	return a
}

// hottest returns the temperature at which the cycles of a chain begin, in the unit of cost. It differs between chains, because no
// temperature suits all problems.
func hottest(number uint64) float64 { return [...]float64{0.004, 0.015, 0.06}[number%3] }

// coldest is the temperature at which a cycle ends, as a fraction of the one at which it begins.
const coldest = 0.01

// moveWork is how many blocks are visited between two checks of the time and the temperature.
const moveWork = 1 << 13

// run makes moves until the chain has done the given work in total.
func (a *annealer) run(work int64, ctx context.Context) {
	for a.Placed.Visited < work && a.least > a.goal && ctx.Err() == nil {
		done := a.Placed.Visited - a.begin
		if done >= a.cycle {
			a.begin, a.cycle, done = a.Placed.Visited, 2*a.cycle, 0
		}
		heat := a.hottest * math.Pow(coldest, float64(done)/float64(a.cycle))
		for next := a.Placed.Visited + moveWork; a.Placed.Visited < next; a.Placed.Visited++ {
			a.move(heat)
		}
	}
}

// move gives a critical item another position in the order.
func (a *annealer) move(heat float64) {
	from, to := int(a.Position[a.critical()]), a.rng.IntN(len(a.Order))
	if from != to {
		a.try(from, to, a.cost, a.cost(a.Peak, a.above[len(a.above)-1])-heat*math.Log(a.rng.Float64()))
	}
}

// cost is the peak plus the average height of an item above the goal, as a multiple of the bound.
func (a *annealer) cost(peak, above int64) float64 {
	return (float64(peak) + float64(above)/float64(len(a.Order))) / a.bound
}

// critical picks an item that reaches the peak, or descends at random to one that it rests upon. If only fixed items reach the peak, it
// picks any.
func (a *annealer) critical() int32 {
	a.tops = a.tops[:0]
	for _, i := range a.Order {
		if a.Base[i]+a.m.Items[i].Top == a.Peak {
			a.tops = append(a.tops, i)
		}
	}
	x := a.Order[a.rng.IntN(len(a.Order))]
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
	for i := range a.m.Of(x) {
		r := &a.m.Of(x)[i]
		offset := a.Base[x] + r.Low
		blocks := a.Placed.Around(r)
		below := blocks[:blocks.IndexFrom(offset)]
		a.Placed.Visited += int64(len(below))
		for k := range below {
			b := &below[k]
			if b.Lo < r.Hi && b.Hi > r.Lo && b.End > offset-a.m.Items[x].Step && a.Position[b.Item] >= 0 && b.Item != x {
				a.tops = append(a.tops, b.Item)
			}
		}
	}
}
