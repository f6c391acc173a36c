package policy

import (
	"cmp"
	"slices"
	"time"

	"gm/internal/swap/simulate"
)

// tryWork is how many changes are tried, times operators and candidates: those of a second or so.
const tryWork = 4 << 20

// tries returns how many changes are tried at most.
func (c *chooser) tries() int {
	const each = 32 // of a candidate, where there are few
	return min(tryWork/(len(c.Graph.Ops)+len(c.all)+1), each*len(c.all))
}

// improve changes the share of one candidate at a time, the one that costs the most time first, and frees the memory that this takes by moving
// the cheapest others. It stops after this many changes, when no change makes the step better, or when the step cannot be faster.
//
// Networks repeat themselves: a change that does not help with one tensor rarely helps with the next similar one. After each failure twice as
// many changes of that kind are skipped, until one helps; when none does, all are tried.
func (c *chooser) improve(best *outcome, tries int) {
	clear(c.banned)
	least := c.Paced[c.Ops()]
	for all := false; tries > 0 && best.step > least; {
		t := trial{chooser: c, best: best, everyone: all, patience: map[kind]backoff{}, left: tries}
		t.round()
		if tries = t.left; !t.better && all {
			return
		}
		all = !t.better
	}
}

// trial is a round of changes.
type trial struct {
	*chooser
	best     *outcome
	everyone bool // is tried
	patience map[kind]backoff
	better   bool
	left     int // changes
}

// kind is what similar changes have in common.
type kind struct {
	bytes int64
	price time.Duration
	from  int64
	to    int64
}

// backoff is how many changes of a kind are passed over after the next failure, and how many still are after the last.
type backoff struct{ next, left int }

func (t *trial) round() {
	for _, i := range t.byCost(t.best) {
		for _, share := range t.shares(i, t.best.share[i]) {
			if t.left <= 0 {
				return
			}
			x := &t.all[i]
			k := kind{x.bytes, x.price, t.best.share[i], share}
			p := t.patience[k]
			if p.left > 0 && !t.everyone {
				p.left--
				t.patience[k] = p
				continue
			}
			t.left--
			if t.try(i, share) {
				t.patience[k] = backoff{}
				t.better = true
				break
			}
			t.patience[k] = backoff{2*p.next + 1, 2*p.next + 1}
		}
	}
}

// try changes one share, and returns whether that is any better.
func (t *trial) try(i int32, share int64) bool {
	if !t.change(t.best.share, i, share) {
		return false
	}
	o, err := t.evaluate(t.best.step)
	if err != nil || !o.better(&t.best.result) {
		return false
	}
	*t.best = o
	return true
}

// shares lists the shares that a candidate may have instead of its present one.
func (c *chooser) shares(i int32, now int64) []int64 {
	x := &c.all[i]
	all := []int64{keep, x.bytes}
	if x.able {
		all = append(all, 0)
		if row := c.Graph.Tensors[x.Tensor].Row; row > 0 {
			for quarter := range int64(3) {
				all = append(all, x.bytes*(quarter+1)/4/row*row)
			}
		}
	}
	slices.Sort(all[2:])
	return slices.DeleteFunc(slices.Compact(all), func(share int64) bool { return share == now })
}

// change chooses the given shares, but for that of one candidate, and frees the memory that this takes. It returns false if memory does not
// suffice.
func (c *chooser) change(share []int64, i int32, to int64) bool {
	next := slices.Clone(share)
	for _, j := range c.byTensor.Of(c.all[i].Tensor) {
		if to > 0 && next[j] > 0 {
			next[j] = to // there is one copy of a tensor
		}
	}
	next[i] = to
	c.load(next)
	c.locked = i
	defer func() { c.locked = -1 }()
	return c.host <= c.Limits.Host && c.cover(taste{most: c.stall}) == nil
}

// byCost lists the candidates that are away, those that cost the most time first: to be recomputed, or waited for.
func (c *chooser) byCost(o *outcome) []int32 {
	waited := make([]time.Duration, len(c.Graph.Tensors))
	if actions, err := c.actions(o); err == nil {
		c.machine.Run(actions, func(s simulate.Span) {
			if s.Wait {
				waited[s.Tensor] += s.End - s.Begin
			}
		})
	}
	cost := make([]time.Duration, len(c.all))
	var order []int32
	for i := range c.all {
		x := &c.all[i]
		if o.share[i] == keep {
			continue
		}
		cost[i] = waited[x.Tensor]
		if o.share[i] < x.bytes {
			cost[i] += x.price
		}
		order = append(order, int32(i))
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(cost[b], cost[a]) })
	return order
}
