package remat

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"gm/internal/swap/draft"
)

// gap is a stretch of stages through which a tensor may be dropped: those behind one that needs it, up to the next that does.
type gap struct{ t, after, need int32 }

// gaps appends those in which tensors are held and that have a stage in them, or those in which they are not.
func (s *state) gaps(isHeld bool, to []gap) []gap {
	for _, t := range s.able {
		made := int(s.Graph.Tensors[t].Made)
		for need := s.needs[t].After(made); need >= 0; need = s.needs[t].After(need | 63) {
			word := s.ends(t, need/64, isHeld)
			if need/64 == made/64 {
				word &^= 2<<(made%64) - 1
			}
			for ; word != 0; word &= word - 1 {
				x := gap{t: t, need: int32(need&^63 + bits.TrailingZeros64(word))}
				if x.after = int32(s.needs[t].Before(int(x.need))); s.free(x) {
					to = append(to, x)
				}
			}
		}
	}
	s.work += int64(len(s.able))
	return to
}

// ends returns those of a word of stages in which gaps of a tensor end.
func (s *state) ends(t int32, word int, isHeld bool) uint64 {
	needs, held := s.needs[t][0], s.held[t][0]
	if !isHeld {
		return needs[word] &^ held[word]
	}
	right := needs[word] << 1 // stages right behind one that needs the tensor
	if word > 0 {
		right |= needs[word-1] >> 63
	}
	return held[word] &^ right
}

// offer is a gap through which a held tensor may be dropped.
type offer struct {
	gap
	price float64 // ns a byte beyond the limit and a stage, or less
	taste float64 // what the price is multiplied by
}

// offers is a heap, the cheapest on top.
type offers []offer

func (h offers) Len() int      { return len(h) }
func (h offers) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h offers) Less(i, j int) bool {
	x, y := &h[i], &h[j]
	return cmp.Or(cmp.Compare(x.price, y.price), cmp.Compare(x.t, y.t), cmp.Compare(x.need, y.need)) < 0
}
func (h *offers) Push(x any) { *h = append(*h, x.(offer)) }
func (h *offers) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// drop drops tensors until memory suffices or nothing helps: first the cheapest for what it frees of memory that is short or, as a whole, for
// all that it frees where memory is short. If there is a source of randomness prices are taken for more or less than they are.
func (s *state) drop(r *rand.Rand, whole bool) {
	for before := int64(math.MaxInt64); s.over > 0 && s.over < before; {
		before = s.over
		s.dropOnce(r, whole)
	}
}

// dropOnce does so with the gaps that there are now, and those that come of them.
func (s *state) dropOnce(r *rand.Rand, whole bool) {
	c := covering{state: s, r: r, whole: whole}
	c.sums()
	for _, x := range s.gaps(true, nil) {
		c.offer(x)
	}
	heap.Init(&c.heap)
	for s.over > 0 && len(c.heap) > 0 && s.work < s.most {
		x := heap.Pop(&c.heap).(offer)
		price, along := s.price(x.gap)
		if frees, all := c.frees(x.gap); c.whole && frees > 0 {
			price *= float64(frees) / float64(all)
		}
		if price *= x.taste; math.IsInf(price, 1) {
			continue
		}
		if len(c.heap) > 0 && price > c.heap[0].price {
			x.price = max(price, math.Nextafter(x.price, math.Inf(1)))
			heap.Push(&c.heap, x)
			continue
		}
		s.flip(x.t, x.need)
		if along {
			s.holdGhosts(x.t, x.need)
		}
		c.sums()
		c.follow(x.need)
	}
}

// covering is what is offered.
type covering struct {
	*state
	r     *rand.Rand
	whole bool
	heap  offers
	short []int64 // bytes beyond the limit in the stages before each
	count []int64 // how many of those stages are beyond it
}

// sums adds up what is beyond the limit now.
func (c *covering) sums() {
	ops := c.Ops()
	c.short, c.count = draft.Zeroed(c.short, int(ops)+1), draft.Zeroed(c.count, int(ops)+1)
	c.work += int64(ops) / 8
	for v := range ops {
		beyond := c.excess(v)
		c.short[v+1], c.count[v+1] = c.short[v]+beyond, c.count[v]
		if beyond > 0 {
			c.count[v+1]++
		}
	}
}

// offer adds an offer at a price that is most likely too low: what is recomputed on the way is left out.
func (c *covering) offer(x gap) {
	t := &c.Graph.Tensors[x.t]
	frees, all := c.frees(x)
	if frees == 0 || x.need == x.after+1 {
		return
	}
	if c.whole {
		frees = all
	}
	taste := 1.0
	if c.r != nil {
		taste = math.Exp(2*c.r.Float64() - 1)
	}
	c.heap = append(c.heap, offer{x, taste * float64(t.Recompute) / float64(frees), taste})
}

// follow offers what a stage needs anew, before and behind it.
func (c *covering) follow(v int32) {
	for _, t := range c.again[v] {
		for _, from := range c.Graph.Tensors[t].From {
			c.followGap(from, v)
			if next := c.needs[from].After(int(v)); next >= 0 {
				c.followGap(from, int32(next))
			}
		}
	}
}

// frees returns what dropping a tensor frees of what is beyond the limit, at most, and what it would free if more were.
func (c *covering) frees(x gap) (frees, all int64) {
	first, end := x.after+1, x.need+1
	all = c.Graph.Tensors[x.t].Bytes * (c.count[end] - c.count[first])
	return min(all, c.short[end]-c.short[first]), all
}

func (c *covering) followGap(t, need int32) {
	if x := (gap{t, int32(c.needs[t].Before(int(need))), need}); has(c.held[t], int(need)) && c.free(x) {
		before := len(c.heap)
		if c.offer(x); len(c.heap) > before {
			heap.Fix(&c.heap, before)
		}
	}
}

// price returns what it costs to drop a tensor in ns for each byte beyond the limit and stage that this frees, and whether that is with what is
// recomputed on the way held until it is needed next. It is infinite if the gap is none now, or nothing is freed.
func (s *state) price(x gap) (price float64, along bool) {
	if !s.isGap(x) || !has(s.held[x.t], int(x.need)) {
		return math.Inf(1), false
	}
	step, over, mark := s.step, s.over, s.mark()
	s.flip(x.t, x.need)
	price = each(s.step-step, over-s.over)
	if s.holdGhosts(x.t, x.need) {
		if other := each(s.step-step, over-s.over); other < price {
			price, along = other, true
		}
	}
	s.back(mark)
	return price, along
}

func each(cost time.Duration, frees int64) float64 {
	if frees <= 0 {
		return math.Inf(1)
	}
	return float64(cost) / float64(frees)
}

// holdGhosts holds what is recomputed in a stage beside a tensor, until it is needed next. It returns whether there is any.
func (s *state) holdGhosts(t, v int32) bool {
	any := false
	for _, ghost := range slices.Clone(s.again[v]) {
		next := int32(s.needs[ghost].After(int(v)))
		if ghost != t && next >= 0 && !has(s.held[ghost], int(next)) && s.free(gap{ghost, v, next}) {
			s.flip(ghost, next)
			any = true
		}
	}
	return any
}
