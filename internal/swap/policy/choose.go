package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gm/internal/swap/draft"
)

// taste is how a choice is made.
type taste struct {
	least  float64 // ns a byte: what is cheaper to recompute, beside what the program takes to copy it, is not copied in the background
	most   float64 // what is dearer by as much than what the program takes to copy it is not recomputed while copies can be waited for
	chains bool    // rather than wait, what others are recomputed from is recomputed too
	small  int64   // bytes: what has fewer is chosen only where nothing else suffices
}

// choose chooses what is away for memory to suffice. The error is a *ShortError.
func (c *chooser) choose(how taste) error {
	c.forget()
	if c.filled.least != how.least || c.filled.small != how.small || c.filled.share == nil {
		c.fill(how)
		c.filled.keep(c, how)
	} else {
		c.filled.restore(c)
	}
	return c.cover(how)
}

// filled is what fill chose for the last price, which tastes and bans have in common.
type filled struct {
	least float64
	small int64
	share []int64
	from  []int32
	delta []int64
	host  int64
}

func (f *filled) keep(c *chooser, how taste) {
	f.least, f.small, f.host = how.least, how.small, c.host
	f.share, f.from, f.delta = append(f.share[:0], c.share...), append(f.from[:0], c.from...), append(f.delta[:0], c.delta...)
}

func (f *filled) restore(c *chooser) {
	c.host = f.host
	copy(c.share, f.share)
	copy(c.from, f.from)
	copy(c.delta, f.delta)
}

// fill keeps the lane to the host busy while memory is short anywhere: with the tensors that are dearest to recompute of those that are
// written by then, and at least as dear as least.
func (c *chooser) fill(how taste) {
	c.level.set(c.over)
	var waiting []int32 // the dearest last
	lane := time.Duration(0)
	for next := int32(0); int(next) < len(c.all) || len(waiting) > 0; {
		if len(waiting) == 0 {
			lane = max(lane, c.written(next))
		}
		for ; int(next) < len(c.all) && c.written(next) <= lane; next++ {
			if c.all[next].spares >= how.least && c.all[next].bytes >= how.small {
				at, _ := slices.BinarySearchFunc(waiting, next, c.later)
				waiting = slices.Insert(waiting, at, next)
			}
		}
		if len(waiting) == 0 {
			continue
		}
		i := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		x := &c.all[i]
		from := max(x.After+1, draft.FirstAt(c.Paced, lane+x.copied))
		if c.level.most(from, c.end[i]) > 0 && c.host+x.bytes <= c.Limits.Host {
			c.take(i, x.bytes, from)
			c.level.raise(from, c.end[i], -x.bytes)
			lane += x.copied
		}
	}
}

// written returns when a candidate's tensor is, if nothing waits.
func (c *chooser) written(i int32) time.Duration {
	return c.Paced[c.Graph.Tensors[c.all[i].Tensor].Made+1]
}

// later orders candidates for the lane: those that are copied first come last.
func (c *chooser) later(a, b int32) int {
	x, y := &c.all[a], &c.all[b]
	return cmp.Or(cmp.Compare(x.spares, y.spares), int(x.Before-y.Before), int(b-a))
}

// cover makes memory suffice at one operator after the other: the cheapest is recomputed; if there is none, or it is too dear, the
// compute stream waits for a copy. The error is a *ShortError: it does not suffice even so.
func (c *chooser) cover(how taste) error {
	c.late, c.open = c.late[:0], c.open[:0]
	for i := range c.all {
		if c.share[i] > 0 && c.from[i] > c.all[i].After+1 {
			c.late = append(c.late, int32(i))
		}
	}
	slices.SortFunc(c.late, func(a, b int32) int { return cmp.Or(int(c.from[a]-c.from[b]), int(a-b)) })
	c.kept = append(c.kept[:0], c.lastly...)
	c.sum = 0
	defer func() { c.now = -1 }()
	for op := range c.Ops() {
		c.now = op
		c.sum += c.delta[op]
		for _, i := range c.byAfter.Of(op) {
			if c.share[i] == keep && c.all[i].able {
				at, _ := slices.BinarySearch(c.open, c.cheapness[i])
				c.open = slices.Insert(c.open, at, c.cheapness[i])
			}
		}
		for c.over[op]+c.sum > 0 {
			if !c.coverBy(op, how) {
				return &draft.ShortError{Bytes: c.over[op] + c.sum, Op: op}
			}
		}
	}
	return nil
}

// coverBy frees some memory at an operator.
func (c *chooser) coverBy(op int32, how taste) bool {
	if c.again(op, how, true) || how.chains && c.again(op, how, false) || c.hurry(op) || c.copyLast(op, how.small) {
		return true
	}
	if how.small > 0 {
		how.small = 0
		return c.coverBy(op, how)
	}
	return c.again(op, taste{most: math.Inf(1)}, false)
}

// covers reports whether a candidate that is not chosen yet would free memory at an operator.
func (c *chooser) covers(i, op int32) bool {
	return c.share[i] == keep && i != c.locked && c.all[i].After < op && op < c.end[i]
}

// again lets the cheapest candidate be recomputed that is not needed at an operator, if it takes at most this many ns a byte. Those that
// cannot be chosen at this operator or behind it are forgotten.
func (c *chooser) again(op int32, how taste, alone bool) bool {
	left := 0
	for k, at := range c.open {
		i := c.cheap[at]
		if c.all[i].dear > how.most+c.handled {
			c.open = slices.Delete(c.open, left, k)
			return false
		}
		switch {
		case c.banned[i] || !c.covers(i, op):
			continue // for good: what is open begins before the operator
		case c.all[i].spares <= how.most && c.all[i].bytes >= how.small && (!alone || c.alone(i)):
			c.take(i, 0, c.all[i].After+1)
			c.open = slices.Delete(c.open, left, k+1)
			return true
		}
		c.open[left] = at
		left++
	}
	c.open = c.open[:left]
	return false
}

// alone reports whether a candidate can be recomputed without what else is recomputed coming back for that, now or later.
func (c *chooser) alone(i int32) bool {
	x := &c.all[i]
	if c.end[i] < x.Before {
		return false
	}
	for _, need := range x.needs {
		for _, j := range c.byTensor.Of(need) {
			y := &c.all[j]
			if c.share[j] != keep && c.share[j] < y.bytes && y.After < x.Before && x.Before < c.end[j] {
				return false
			}
		}
	}
	return true
}

// hurry waits at an operator for the copy that ends first of those that end behind it.
func (c *chooser) hurry(op int32) bool {
	past := 0
	for past < len(c.late) && c.from[c.late[past]] <= op {
		past++
	}
	c.late = slices.Delete(c.late, 0, past)
	for k, i := range c.late {
		if c.all[i].After < op && op < c.end[i] {
			c.shift(op, min(c.from[i], c.end[i]), -c.all[i].bytes)
			c.from[i] = op
			c.late = slices.Delete(c.late, k, k+1)
			return true
		}
	}
	return false
}

// copyLast copies the candidate that is needed last, which will be waited for. Those that cannot be chosen at this operator or behind it
// are forgotten.
func (c *chooser) copyLast(op int32, small int64) bool {
	last, left, k := int32(-1), 0, 0
	for ; k < len(c.kept); k++ {
		i := c.kept[k]
		if last >= 0 && c.all[i].Before < c.end[last] {
			break // as all behind it, which end no later than their gaps do
		}
		if c.share[i] != keep || c.end[i] <= op {
			continue
		}
		c.kept[left] = i
		left++
		if c.all[i].bytes >= small && c.covers(i, op) && c.host+c.all[i].bytes <= c.Limits.Host && (last < 0 || c.end[i] > c.end[last] || c.end[i] == c.end[last] && i < last) {
			last = i
		}
	}
	c.kept = slices.Delete(c.kept, left, k)
	if last < 0 {
		return false
	}
	c.take(last, c.all[last].bytes, op)
	return true
}

// blame bans what is recomputed and takes memory at an operator for that, the most first, until this many bytes are banned. It returns
// false if there is nothing to ban.
func (c *chooser) blame(op int32, bytes int64) bool {
	type culprit struct {
		i     int32
		takes int64
	}
	var all []culprit
	for i := range int32(len(c.all)) {
		if c.share[i] != keep && c.share[i] < c.all[i].bytes && c.end[i] <= op {
			if takes := c.takes(i, op); takes > 0 {
				all = append(all, culprit{i, takes})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b culprit) int { return cmp.Compare(b.takes, a.takes) })
	for _, x := range all {
		if bytes <= 0 {
			break
		}
		c.banned[x.i] = true
		bytes -= x.takes
	}
	return len(all) > 0
}

// takes returns the bytes that are in use at an operator for a candidate to be recomputed there or before.
func (c *chooser) takes(i, op int32) int64 {
	takes := int64(0)
	if c.end[i] == op {
		takes = c.all[i].ghosts
	}
	for _, need := range c.all[i].needs {
		for _, j := range c.byTensor.Of(need) {
			if c.end[j] == c.end[i] && op < c.all[j].Before {
				takes += c.all[j].bytes
			}
		}
	}
	return takes
}
