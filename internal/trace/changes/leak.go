package changes

import (
	"cmp"
	"slices"
)

// Leak is a set of allocations with more live bytes at the end of nearly every iteration than at the end of the one before.
type Leak struct {
	Device int32  `json:"device"`
	Stack  string `json:"stack"`         // folded; "" if the trace has none
	Size   int64  `json:"size_bytes"`    // of each block; 0 if they differ
	Stream int32  `json:"stream_number"` // 0 for the default stream, others in order of first use; -1 if they differ
	Each   int64  `json:"bytes_per_iteration"`
	Grew   int    `json:"iterations_that_grew"`
	Of     int    `json:"iterations"` // that were examined: all but the first
}

// growth tracks how live bytes change from the end of an iteration to the end of the next.
type growth struct {
	last        int64 // bytes at the end of the last iteration
	grew, fell  int
	total       int64 // bytes: the sum of its growth
	ended       int   // the iteration in which it changed last
	delta       int64 // bytes: its growth in that one
	outstanding bool  // it has changed since the last iteration ended
}

func (g *growth) step(bytes int64) {
	switch {
	case bytes > g.last:
		g.grew++
	case bytes < g.last:
		g.fell++
	}
	g.delta = bytes - g.last
	g.total += g.delta
	g.last = bytes
}

// leastIterations is how many iterations must be compared with the one before to distinguish a leak from chance: for blocks
// of one stack or size, and for the sum of all blocks.
const (
	leastIterations    = 3
	leastIterationsAll = 6
)

// leaks reports whether the bytes grow nearly always: in nine iterations out of ten.
func (g *growth) leaks(iterations, least int) bool {
	return iterations >= least && g.total > 0 && 10*g.grew >= 9*iterations && 10*g.fell <= iterations
}

// growths tracks the growth of groups, of blocks with the same stack, and of all blocks.
type growths struct {
	ended   int // iterations
	changed []*group
	stacks  map[int32]*stackGrowth
	all     growth
	total   int64
}

type stackGrowth struct {
	growth
	now int64
}

func newGrowths() *growths { return &growths{stacks: map[int32]*stackGrowth{}} }

// touch records that a group has just changed.
func (gs *growths) touch(g *group) {
	if !g.growth.outstanding {
		g.growth.outstanding = true
		gs.changed = append(gs.changed, g)
	}
}

// iteration ends an iteration.
func (gs *growths) iteration() {
	moved := map[int32]bool{}
	for _, g := range gs.changed {
		g.growth.outstanding = false
		delta := g.now.bytes - g.growth.last
		gs.total += delta
		if g.stack != 0 && delta != 0 {
			s := gs.stacks[g.stack]
			if s == nil {
				s = &stackGrowth{}
				gs.stacks[g.stack] = s
			}
			s.now += delta
			moved[g.stack] = true
		}
		gs.step(&g.growth, g.now.bytes)
	}
	for stack := range moved {
		s := gs.stacks[stack]
		gs.step(&s.growth, s.now)
	}
	gs.step(&gs.all, gs.total)
	gs.changed = gs.changed[:0]
	gs.ended++
}

// step compares with the iteration before, if there is one.
func (gs *growths) step(g *growth, bytes int64) {
	if gs.ended == 0 {
		g.last = bytes
		return
	}
	g.ended = gs.ended
	g.step(bytes)
}

// rate returns the growth in an iteration, in bytes. The last one ends where the trace does, maybe in the middle of another, and does not
// count if it need not.
func (gs *growths) rate(g *growth) int64 {
	before := g.total
	if g.ended == gs.ended-1 {
		before -= g.delta
	}
	if n := gs.ended - 2; n > 0 && before > 0 {
		return before / int64(n)
	}
	return g.total / int64(gs.ended-1)
}

// leaks returns the leaks, the most bytes first. Blocks of one size are a leak of that size. Blocks that grow in different sizes are
// one leak per stack or, without stacks, one leak in total.
func (gs *growths) leaks(c *Contents) []Leak {
	n := gs.ended - 1
	var found []Leak
	add := func(g *growth, stack int32, size int64, stream int32) {
		found = append(found, Leak{
			Device: c.Device, Stack: c.text(stack), Size: size, Stream: stream, Each: gs.rate(g), Grew: g.grew, Of: n,
		})
	}
	var groups []*group
	explained := int64(0)
	ofStack := map[int32]int64{}
	for _, g := range c.groups {
		if g.growth.leaks(n, leastIterations) {
			groups = append(groups, g)
			ofStack[g.stack] += g.growth.total
			explained += g.growth.total
		}
	}
	mixed := map[int32]bool{}
	for code, s := range gs.stacks {
		if s.leaks(n, leastIterations) && 2*ofStack[code] < s.total {
			mixed[code] = true
			explained += s.total - ofStack[code]
			add(&s.growth, code, 0, -1)
		}
	}
	for _, g := range groups {
		if !mixed[g.stack] {
			add(&g.growth, g.stack, g.size, g.stream)
		}
	}
	if gs.all.leaks(n, leastIterationsAll) && 2*explained < gs.all.total {
		add(&gs.all, 0, 0, -1)
	}
	slices.SortFunc(found, func(a, b Leak) int {
		return cmp.Or(cmp.Compare(b.Each, a.Each), cmp.Compare(a.Stack, b.Stack), cmp.Compare(b.Size, a.Size), cmp.Compare(a.Stream, b.Stream))
	})
	return found
}
