package exact

import (
	"cmp"
	"math"
	"slices"
)

// part is a range of sections whose ends no remaining buffer crosses.
type part struct {
	x, y int32
	room int64 // the least spare room of a section
}

// parts searches each part of the sections [x, y), the tightest first.
func (s *Search) parts(x, y int32) Outcome {
	var few [16]part
	found := few[:0]
	for a := x; a < y; {
		if s.count[a] == 0 {
			a++
			continue
		}
		p := part{x: a, y: a + 1, room: s.room(a)}
		for ; p.y < y && s.cross[p.y] > 0; p.y++ {
			p.room = min(p.room, s.room(p.y))
		}
		found = append(found, p)
		a = p.y
	}
	if len(found) > 1 {
		slices.SortFunc(found, func(p, q part) int { return cmp.Or(cmp.Compare(p.room, q.room), cmp.Compare(p.y-p.x, q.y-q.x)) })
	}
	for _, p := range found {
		if outcome := s.solve(p.x, p.y); outcome != Fits {
			return outcome
		}
	}
	return Fits
}

// room returns the spare room of a section: what is left below the capacity when all its buffers are placed without a gap.
func (s *Search) room(t int32) int64 { return s.attempt.Capacity - s.floor[t] - s.left[t] }

// solve searches a part. When it fails, buffers of the part may remain placed; the caller undoes that.
func (s *Search) solve(x, y int32) Outcome {
	name := s.name(x, y)
	if s.failed.has(name, s.attempt.Capacity) {
		return Fails
	}
	if s.exhausted(y - x) {
		return Stopped
	}
	began, length := s.nodes, len(s.trail)
	c := s.choose(x, y)
	var few [32]int32
	for _, i := range s.fitting(&c, few[:0]) {
		s.place(i, c.floor)
		if outcome := s.proceed(x, y, length); outcome != Fails {
			return outcome
		}
	}
	if c.skip {
		s.raise(c.section, c.section+1, c.next)
		if outcome := s.proceed(x, y, length); outcome != Fails {
			return outcome
		}
	}
	s.failed.add(name, s.attempt.Capacity, s.nodes-began)
	return Fails
}

// fitting appends the buffers that fit a corner, in the order in which they are tried, one of each class.
func (s *Search) fitting(c *corner, found []int32) []int32 {
	for _, i := range s.over[c.section] {
		if s.least[i] > c.floor || len(found) > 0 && s.class[i] == s.class[found[len(found)-1]] {
			continue
		}
		found = append(found, i)
	}
	if !s.attempt.Level {
		return found
	}
	level := 0
	for k, i := range found {
		if s.level(i, c.floor+s.in.Size[i]) {
			copy(found[level+1:k+1], found[level:k])
			found[level] = i
			level++
		}
	}
	return found
}

// level reports whether the floor before or after a buffer is at the given height.
func (s *Search) level(i int32, top int64) bool {
	lo, hi := s.in.Lo[i], s.in.Hi[i]
	return lo > 0 && s.floor[lo-1] == top || int(hi) < s.in.Sections && s.floor[hi] == top
}

// proceed continues the search after a choice, and undoes the choice if the search fails.
func (s *Search) proceed(x, y int32, length int) Outcome {
	outcome := Fails
	if s.settle() {
		outcome = s.parts(x, y)
	}
	if outcome == Fails {
		s.undo(length)
	}
	return outcome
}

// exhausted counts a node of the given number of sections and reports whether the attempt is over.
func (s *Search) exhausted(sections int32) bool {
	s.nodes++
	s.unasked += int64(max(sections, leastSections))
	if s.nodes > s.attempt.Nodes {
		return true
	}
	if s.unasked < askEvery || s.attempt.Stop == nil {
		return false
	}
	s.unasked = 0
	return s.attempt.Stop()
}

// Stop is called each time this many sections were searched; a node counts as at least a thousand.
const (
	askEvery      = 1 << 18
	leastSections = 1 << 10
)

// name returns the state of the sections [x, y).
func (s *Search) name(x, y int32) state {
	var a, b uint64
	for t := x; t < y; t++ {
		h := hash(uint64(s.floor[t]) + uint64(t)<<48)
		a += h ^ s.names[t]
		b = (b^h)*0x9fb21c651e98df25 + s.names[t]
	}
	return state{a ^ hash(uint64(x)<<32|uint64(y)), b}
}

// corner is the leftmost or rightmost section of a valley, a range of sections with the same floor and higher neighbours.
// A buffer that lies on the floor at a corner lies within the valley.
type corner struct {
	section int32
	skip    bool  // it may stay empty
	next    int64 // the least offset above it if it stays empty
	choices int32
	room    int64
	floor   int64
}

// choose returns the corner of a part, each section of which has buffers left, at which to branch: see before.
func (s *Search) choose(x, y int32) corner {
	best := corner{choices: math.MaxInt32}
	for a := x; a < y; {
		b, floor := a+1, s.floor[a]
		for b < y && s.floor[b] == floor {
			b++
		}
		if (a == x || s.floor[a-1] > floor) && (b == y || s.floor[b] > floor) {
			s.weigh(corner{section: a, floor: floor}, +1, &best)
			if b > a+1 {
				s.weigh(corner{section: b - 1, floor: floor}, -1, &best)
			}
			if best.choices == 0 {
				break
			}
		}
		a = b
	}
	return best
}

// weigh counts the choices at a corner whose valley lies in the given direction, and takes it if it comes before the best.
func (s *Search) weigh(c corner, direction int32, best *corner) {
	t := c.section
	c.room = s.room(t)
	beyond, far := wall, t // the least offset of buffers that extend beyond the valley; how far buffers that fit reach into it
	for _, i := range s.over[t] {
		if s.least[i] > c.floor {
			beyond = min(beyond, s.least[i])
			continue
		}
		c.choices++
		if direction > 0 {
			far = max(far, s.in.Hi[i]-1)
		} else {
			far = min(far, s.in.Lo[i])
		}
	}
	if !s.before(&c, best) {
		return
	}
	if c.room > 0 {
		c.next = min(beyond, s.support(t, far, direction))
		if c.skip = c.next-c.floor <= c.room && s.worthless(&c); c.skip {
			c.choices++
		}
	}
	if s.before(&c, best) {
		*best = c
	}
}

// before reports whether the search branches at c rather than at d: at the one with fewer choices. In a weighted attempt, corners with no choice or
// only one come first, and of others the one with the fewest choices divided by the weight of its section (after Boussemart, Hemery, Lecoutre and Sais, "Boosting systematic search by
// weighting constraints", 2004): where buffers often did not fit, a wrong choice shows early.
func (s *Search) before(c, d *corner) bool {
	if s.attempt.Weighted && c.choices > 1 && d.choices > 1 {
		few, many := float64(c.choices)*s.weight[d.section], float64(d.choices)*s.weight[c.section]
		if few != many {
			return few < many
		}
	} else if c.choices != d.choices {
		return c.choices < d.choices
	}
	switch s.attempt.Prefer {
	case Lowest:
		return c.floor < d.floor
	case Highest:
		return c.floor > d.floor
	}
	return c.room < d.room
}

// support returns the least height at which a buffer that fits the corner at t could lie without touching the floor: on top of
// a buffer beside it, which begins or ends between t and far.
func (s *Search) support(t, far, direction int32) int64 {
	least := wall
	beside := s.starts
	if direction < 0 {
		beside = s.ends
	}
	for u := t + direction; u != far+direction; u += direction {
		for _, i := range beside[u] {
			least = min(least, s.least[i]+s.in.Size[i])
		}
	}
	return least
}

// worthless reports whether no buffer that fits a corner could be moved down into it once it is left empty: for each, another
// buffer may lie in the way. Otherwise to leave the corner empty is no choice, as the layout could be moved down.
func (s *Search) worthless(c *corner) bool {
	for _, i := range s.over[c.section] {
		if s.least[i] > c.floor {
			continue
		}
		top := c.floor + s.in.Size[i]
		if (c.next >= top || s.count[c.section] == 1) && !s.obstructed(i, c.section, top) {
			return false
		}
	}
	return true
}

// obstructed reports whether anything beside section t may lie below top where buffer i lives.
func (s *Search) obstructed(i, t int32, top int64) bool {
	for u := s.in.Lo[i]; u < s.in.Hi[i]; u++ {
		if u == t || s.floor[u] >= top {
			continue
		}
		for _, k := range s.over[u] {
			if k != i && s.least[k] < top && (s.in.Lo[k] > t || s.in.Hi[k] <= t) {
				return true
			}
		}
	}
	return false
}
