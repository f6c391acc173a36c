package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// candidate is a gap through which a tensor may be away.
type candidate struct {
	draft.Gap
	bytes  int64
	copied time.Duration // that a copy to the host takes
	able   bool          // it can be recomputed
	price  time.Duration // of that
	dear   float64       // the same, in ns a byte; +Inf if it cannot
	spares float64       // by how much that is dearer than what copying takes the program, in ns a byte
	ghosts int64         // bytes that are taken on the way
	needs  []int32       // tensors that have to be there for it
}

// keep is the share of a candidate that is not away. Other shares are the bytes that are copied; the rest is recomputed.
const keep = -1

// chooser chooses what is away.
type chooser struct {
	*problem
	all       []candidate   // in the order in which tensors are made
	cheap     []int32       // those that can be recomputed, the cheapest byte first
	cheapness []int32       // the place of each in cheap
	lastly    []int32       // all, that whose gap ends last first
	byAfter   draft.Buckets // candidates by the operator from which on they may be away
	prices    []float64     // ns a byte, of recomputing: what divides them
	sizes     []int64       // bytes: what divides small candidates from others, where what is done takes the program time
	byRank    []int32       // each before those that its tensor is computed from
	byTensor  draft.Buckets
	stall     float64 // ns a byte that copies each way take: recomputing is not worth more
	handled   float64 // ns a byte that the program takes to copy a candidate, at most, as far as that is waited for
	held      float64 // the part of what the program does for a schedule that the compute stream waits for, from 0 to 1
	recipe    draft.Recipe

	share  []int64 // of each candidate
	from   []int32 // the operator from which on its memory is counted as free
	end    []int32 // the one up to which: where its gap ends, or before that, where others are recomputed from it
	banned []bool  // not to be recomputed
	locked int32   // a candidate that is not to be chosen, or -1
	host   int64   // bytes copied
	over   []int64 // bytes beyond the limit at each operator with nothing chosen, with ghosts, and with what is taken while something is recomputed
	beside []int64 // the last of these
	filled filled
	delta  []int64 // what the choice adds to that at each operator: to itself and all behind it
	now    int32   // the operator that memory is made to suffice at, or -1
	sum    int64   // of delta up to that one
	level  levels  // the same while the lane is filled
	open   []int32 // places in cheap of candidates that may be chosen to be recomputed
	late   []int32 // candidates whose copies end behind their last use, by when
	gone   []away
	kept   []int32 // candidates that may be chosen to be copied, as in lastly
}

// newChooser finds the candidates: the gaps in which memory is short when nothing is moved.
func newChooser(p *problem) *chooser {
	c := &chooser{problem: p, over: make([]int64, p.Ops()), beside: make([]int64, p.Ops()), delta: make([]int64, p.Ops()+1), locked: -1, now: -1, held: held(p.Graph)}
	short := make([]int32, p.Ops()+1) // operators before each that are over the limit
	for op, used := range p.Plain {
		short[op+1] = short[op]
		if used > p.Limits.Device {
			short[op+1]++
		}
	}
	for t := range p.Graph.Tensors {
		tensor := &p.Graph.Tensors[t]
		after := tensor.Made
		for _, use := range tensor.Uses {
			x := draft.Gap{Tensor: int32(t), After: after, Before: use}
			if after = use; !x.Empty() && short[x.Before] > short[x.After+1] {
				c.all = append(c.all, c.candidate(x))
			}
		}
	}
	slices.SortStableFunc(c.all, func(a, b candidate) int { return int(p.Graph.Tensors[a.Tensor].Made - p.Graph.Tensors[b.Tensor].Made) })
	c.sort()
	c.prices = c.dividing()
	if p.Graph.Handling != (swap.Handling{}) {
		c.sizes = c.large()
	}
	n := len(c.all)
	c.share, c.from, c.end, c.banned = make([]int64, n), make([]int32, n), make([]int32, n), make([]bool, n)
	return c
}

func (c *chooser) candidate(x draft.Gap) candidate {
	a := candidate{Gap: x, bytes: c.Graph.Tensors[x.Tensor].Bytes, dear: math.Inf(1), spares: math.Inf(1)}
	a.copied = c.Limits.Link.OutTime(a.bytes)
	var price draft.Price
	if price, a.able = c.Remake.Price(&c.recipe, x.Tensor, x.Before); a.able {
		a.ghosts, a.needs = price.Ghosts, slices.Clone(c.recipe.Needs)
		a.ghosts += price.Beside
		a.able = c.AtLeast(x.Before, a.needs)+a.ghosts <= c.Limits.Device
	}
	if a.able {
		handling := &c.Graph.Handling
		copying := handling[swap.Offload] + handling[swap.Free] + handling[swap.Prefetch]
		a.price = max(price.Took, c.waits(price.Launch+handling[swap.Free]+handling[swap.Recompute]))
		a.dear, a.spares = float64(a.price)/float64(a.bytes), float64(a.price-c.waits(copying))/float64(a.bytes)
	}
	return a
}

// large returns sizes: the candidates that have as much at least have two fifths of all bytes, three, and four.
func (c *chooser) large() []int64 {
	var all []int64
	total := int64(0)
	for i := range c.all {
		all = append(all, c.all[i].bytes)
		total += c.all[i].bytes
	}
	slices.SortFunc(all, func(a, b int64) int { return cmp.Compare(b, a) })
	var sizes []int64
	sum, fifths := int64(0), int64(2)
	for _, size := range all {
		for sum += size; fifths < 5 && sum >= total/5*fifths; fifths++ {
			sizes = append(sizes, size)
		}
	}
	return slices.Compact(sizes)
}

// waits returns how long the compute stream is taken to wait for what takes the program so long.
func (c *chooser) waits(took time.Duration) time.Duration {
	return time.Duration(c.held * float64(took))
}

// held returns the part of what a program does for a schedule that the compute stream waits for. That of one that is ahead by a quarter of what it takes to
// launch all operators waits for none: few schedules take it longer.
func held(g *swap.Graph) float64 {
	var took, launch time.Duration
	for i := range g.Ops {
		if g.Ops[i].Launch > 0 { // others may end with the step
			took, launch = took+g.Ops[i].Duration, launch+g.Ops[i].Launch
		}
	}
	if launch == 0 {
		return 0
	}
	return min(1, max(0, 1-4*float64(took-launch)/float64(launch)))
}

// sort lists the candidates in the other orders.
func (c *chooser) sort() {
	largest := int64(1)
	for i := range c.all {
		c.byRank = append(c.byRank, int32(i))
		if c.all[i].able {
			c.cheap = append(c.cheap, int32(i))
		}
		largest = max(largest, c.all[i].bytes)
		if c.all[i].able {
			c.handled = max(c.handled, c.all[i].dear-c.all[i].spares)
		}
	}
	slices.SortStableFunc(c.byRank, func(a, b int32) int { return int(c.Remake.Rank[c.all[b].Tensor] - c.Remake.Rank[c.all[a].Tensor]) })
	slices.SortStableFunc(c.cheap, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.all[a].dear, c.all[b].dear), int(c.all[b].Before-c.all[a].Before))
	})
	c.lastly = slices.Clone(c.byRank)
	slices.SortFunc(c.lastly, func(a, b int32) int { return cmp.Or(int(c.all[b].Before-c.all[a].Before), int(a-b)) })
	c.cheapness = make([]int32, len(c.all))
	for at, i := range c.cheap {
		c.cheapness[i] = int32(at)
	}
	c.byAfter.Fill(c.Ops(), len(c.all), func(i int) int32 { return c.all[i].After + 1 })
	c.byTensor.Fill(int32(len(c.Graph.Tensors)), len(c.all), func(i int) int32 { return c.all[i].Tensor })
	c.stall = float64(c.Limits.Link.OutTime(largest)+c.Limits.Link.InTime(largest)) / float64(largest)
}

// forget forgets what was chosen.
func (c *chooser) forget() {
	c.host = 0
	for i := range c.all {
		c.share[i], c.end[i] = keep, c.all[i].Before
	}
	for op, used := range c.Plain {
		c.over[op] = used - c.Limits.Device
	}
	clear(c.delta)
	clear(c.beside)
}

// load chooses shares, as take does one by one. Memory counts as free from the last use on.
func (c *chooser) load(share []int64) {
	c.forget()
	copy(c.share, share)
	for _, i := range c.byRank {
		if c.share[i] == keep {
			continue
		}
		c.host += c.share[i]
		c.from[i] = c.all[i].After + 1
		if c.share[i] < c.all[i].bytes && c.from[i] < c.end[i] {
			c.prepare(c.all[i].Tensor, c.end[i], func(int32) {})
		}
	}
	for i := range c.all {
		if c.share[i] != keep {
			c.shift(c.from[i], c.end[i], -c.all[i].bytes)
		}
	}
}

// shift adds bytes to those beyond the limit at the operators from first to the one before end.
func (c *chooser) shift(first, end int32, bytes int64) {
	if first = max(first, c.now); first >= end {
		return
	}
	if first == c.now {
		c.sum += bytes
	} else {
		c.delta[first] += bytes
	}
	c.delta[end] -= bytes
}

// take lets a candidate be away, its memory to be free from an operator on.
func (c *chooser) take(i int32, copied int64, from int32) {
	x := &c.all[i]
	c.share[i], c.from[i] = copied, from
	c.host += copied
	c.shift(from, c.end[i], -x.bytes)
	if copied < x.bytes {
		c.bringBack(x.Tensor, c.end[i])
	}
}

// bringBack ends the absence of all that a tensor is recomputed from before an operator.
func (c *chooser) bringBack(t, op int32) {
	var again []int32
	c.prepare(t, op, func(i int32) {
		if c.share[i] == keep {
			return
		}
		c.shift(max(op, c.from[i]), c.end[i], c.all[i].bytes)
		if c.share[i] < c.all[i].bytes {
			again = append(again, c.all[i].Tensor)
		}
	})
	for _, from := range again {
		c.bringBack(from, op)
	}
}

// prepare counts what it takes to recompute a tensor before an operator: its ghosts, and what is taken meanwhile. It ends the gaps of what it is computed from there.
// It calls do for each candidate before that.
func (c *chooser) prepare(t, op int32, do func(i int32)) {
	c.Remake.Begin(&c.recipe)
	c.Remake.Add(&c.recipe, t, op, c.Remake.Dead)
	for _, ghost := range c.recipe.Ghosts {
		c.over[op] += c.Graph.Tensors[ghost].Bytes
	}
	if more := c.Remake.Beside(&c.recipe, t) - c.beside[op]; more > 0 {
		c.beside[op] += more
		c.over[op] += more
	}
	for _, need := range c.recipe.Needs {
		for _, i := range c.byTensor.Of(need) {
			if c.all[i].After < op && op < c.end[i] {
				do(i)
				c.end[i] = op
			}
		}
	}
}

// aways returns what is away. The list is valid until the next call.
func (c *chooser) aways() []away {
	c.gone = c.gone[:0]
	for i, share := range c.share {
		if share != keep {
			c.gone = append(c.gone, away{c.all[i].Gap, share})
		}
	}
	return c.gone
}
