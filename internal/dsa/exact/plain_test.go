package exact

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// plain is the search as the package's comment describes it, without anything incremental: each step copies the state and settles it by looking
// at all buffers and sections until nothing changes. It has to make the same choices in the same order.
type plain struct {
	in     Instance
	a      Attempt
	nodes  int64
	failed map[string]int64 // the greatest capacity that a state is known to fail at
	layout []int64
}

// look is a state.
type look struct {
	placed []bool
	offset []int64
	least  []int64 // of buffers not placed
	floor  []int64 // wall where none is left
}

func (l *look) clone() *look {
	return &look{slices.Clone(l.placed), slices.Clone(l.offset), slices.Clone(l.least), slices.Clone(l.floor)}
}

func (p *plain) try() Outcome {
	n := len(p.in.Lo)
	l := &look{make([]bool, n), make([]int64, n), make([]int64, n), make([]int64, p.in.Sections)}
	p.nodes = 0
	if !p.settle(l) {
		return Fails
	}
	return p.parts(l, 0, int32(p.in.Sections))
}

// over lists the buffers left over a section, the highest rank first.
func (p *plain) over(l *look, t int32) []int32 {
	var all []int32
	for i := range int32(len(p.in.Lo)) {
		if !l.placed[i] && p.in.Lo[i] <= t && t < p.in.Hi[i] {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b int32) int { return cmp.Compare(p.a.Rank[b], p.a.Rank[a]) })
	return all
}

func (p *plain) left(l *look, t int32) (size int64) {
	for _, i := range p.over(l, t) {
		size += p.in.Size[i]
	}
	return size
}

func (p *plain) room(l *look, t int32) int64 { return p.a.Capacity - l.floor[t] - p.left(l, t) }

// settle raises floors and what lies on them until nothing changes, and reports whether all buffers still fit.
func (p *plain) settle(l *look) bool {
	for again := true; again; {
		again = false
		for t := range int32(p.in.Sections) {
			least := wall
			for _, i := range p.over(l, t) {
				if l.least[i] < l.floor[t] {
					l.least[i], again = l.floor[t], true
				}
				least = min(least, l.least[i])
			}
			if least > l.floor[t] {
				l.floor[t], again = least, true
			}
		}
	}
	for t := range int32(p.in.Sections) {
		if l.floor[t] < wall && p.room(l, t) < 0 {
			return false
		}
	}
	return true
}

func (p *plain) parts(l *look, x, y int32) Outcome {
	var found []part
	for t := x; t < y; t++ {
		over := p.over(l, t)
		if len(over) == 0 {
			continue
		}
		crossed := slices.ContainsFunc(over, func(i int32) bool { return p.in.Lo[i] < t })
		if n := len(found); n > 0 && found[n-1].y == t && crossed {
			found[n-1].y, found[n-1].room = t+1, min(found[n-1].room, p.room(l, t))
		} else {
			found = append(found, part{t, t + 1, p.room(l, t)})
		}
	}
	slices.SortStableFunc(found, func(a, b part) int { return cmp.Or(cmp.Compare(a.room, b.room), cmp.Compare(a.y-a.x, b.y-b.x)) })
	for _, f := range found {
		if outcome := p.solve(l, f.x, f.y); outcome != Fits {
			return outcome
		}
	}
	if len(found) == 0 {
		p.layout = l.offset
	}
	return Fits
}

// key names the floors and the buffers left of some sections: of equal buffers it does not matter which are left.
func (p *plain) key(l *look, x, y int32) string {
	var left []string
	for i := range p.in.Lo {
		if !l.placed[i] && p.in.Lo[i] >= x && p.in.Hi[i] <= y {
			left = append(left, fmt.Sprint(p.in.Lo[i], p.in.Hi[i], p.in.Size[i]))
		}
	}
	slices.Sort(left)
	return fmt.Sprint(x, y, l.floor[x:y], left)
}

// solve searches a part. Where it fits the state is that of the layout.
func (p *plain) solve(l *look, x, y int32) Outcome {
	key := p.key(l, x, y)
	if capacity, known := p.failed[key]; known && capacity >= p.a.Capacity {
		return Fails
	}
	if p.nodes++; p.nodes > p.a.Nodes {
		return Stopped
	}
	c := p.corner(l, x, y)
	try := func(next *look) Outcome {
		if !p.settle(next) {
			return Fails
		}
		outcome := p.parts(next, x, y)
		if outcome == Fits {
			*l = *next
		}
		return outcome
	}
	for _, i := range p.fitting(l, c) {
		next := l.clone()
		next.placed[i], next.offset[i] = true, c.floor
		for t := p.in.Lo[i]; t < p.in.Hi[i]; t++ {
			next.floor[t] = c.floor + p.in.Size[i]
		}
		if outcome := try(next); outcome != Fails {
			return outcome
		}
	}
	if c.skip {
		next := l.clone()
		next.floor[c.section] = c.next
		if outcome := try(next); outcome != Fails {
			return outcome
		}
	}
	p.failed[key] = max(p.failed[key], p.a.Capacity)
	return Fails
}

// fitting lists the buffers that are tried at a corner: of equal ones that come one behind the other only the first, and those first that are level.
func (p *plain) fitting(l *look, c corner) []int32 {
	var found, level, other []int32
	for _, i := range p.over(l, c.section) {
		if l.least[i] > c.floor {
			continue
		}
		if n := len(found); n > 0 && p.equal(found[n-1], i) {
			continue
		}
		found = append(found, i)
		top, lo, hi := c.floor+p.in.Size[i], p.in.Lo[i], p.in.Hi[i]
		if lo > 0 && l.floor[lo-1] == top || int(hi) < p.in.Sections && l.floor[hi] == top {
			level = append(level, i)
		} else {
			other = append(other, i)
		}
	}
	if p.a.Level {
		return append(level, other...)
	}
	return found
}

func (p *plain) equal(i, j int32) bool {
	return p.in.Lo[i] == p.in.Lo[j] && p.in.Hi[i] == p.in.Hi[j] && p.in.Size[i] == p.in.Size[j]
}

// corner returns the corner with the fewest choices, of equal ones by preference, and then the first. One without a choice ends the search.
func (p *plain) corner(l *look, x, y int32) corner {
	var all []corner
	for a := x; a < y; {
		b := a + 1
		for b < y && l.floor[b] == l.floor[a] {
			b++
		}
		if l.floor[a] < wall && (a == x || l.floor[a-1] > l.floor[a]) && (b == y || l.floor[b] > l.floor[a]) {
			all = append(all, p.count(l, a, +1))
			if b-1 > a {
				all = append(all, p.count(l, b-1, -1))
			}
		}
		a = b
	}
	if i := slices.IndexFunc(all, func(c corner) bool { return c.choices == 0 }); i >= 0 {
		all = all[:i+1] // the search fails there
	}
	slices.SortStableFunc(all, func(c, d corner) int {
		order := map[Preference]int{Tightest: cmp.Compare(c.room, d.room), Lowest: cmp.Compare(c.floor, d.floor), Highest: cmp.Compare(d.floor, c.floor)}
		return cmp.Or(cmp.Compare(c.choices, d.choices), order[p.a.Prefer])
	})
	return all[0]
}

// count counts the choices at a corner whose valley lies in a direction.
func (p *plain) count(l *look, t, direction int32) corner {
	c := corner{section: t, floor: l.floor[t], room: p.room(l, t)}
	beyond, reach := wall, t
	var fit []int32
	for _, i := range p.over(l, t) {
		switch {
		case l.least[i] > c.floor:
			beyond = min(beyond, l.least[i])
			continue
		case direction > 0:
			reach = max(reach, p.in.Hi[i]-1)
		default:
			reach = min(reach, p.in.Lo[i])
		}
		fit = append(fit, i)
	}
	c.choices = int32(len(fit))
	// If the corner stays empty, a buffer could lie on one beside it, that begins, or ends, where those that fit reach.
	c.next = beyond
	for i := range int32(len(p.in.Lo)) {
		edge := p.in.Lo[i]
		if direction < 0 {
			edge = p.in.Hi[i] - 1
		}
		if !l.placed[i] && (edge-t)*direction > 0 && (reach-edge)*direction >= 0 {
			c.next = min(c.next, l.least[i]+p.in.Size[i])
		}
	}
	movable := func(i int32) bool {
		top := c.floor + p.in.Size[i]
		return (c.next >= top || len(p.over(l, t)) == 1) && !p.obstructed(l, i, t, top)
	}
	if c.skip = c.room > 0 && c.next-c.floor <= c.room && !slices.ContainsFunc(fit, movable); c.skip {
		c.choices++
	}
	return c
}

// obstructed reports whether a buffer that does not live in section t may lie below top over some other section of buffer i.
func (p *plain) obstructed(l *look, i, t int32, top int64) bool {
	for k := range p.in.Lo {
		if apart := p.in.Hi[k] <= t || t < p.in.Lo[k]; !l.placed[k] && apart && conflict(p.in, int(i), k) && l.least[k] < top {
			return true
		}
	}
	return false
}

// full returns buffers of several sections, and one for what each section lacks to a height: no space can be wasted, and often they do not fit.
// With spare, some sections are left with room.
func full(rng *rand.Rand, sections int, height int64, spare bool) Instance {
	in := Instance{Sections: sections}
	room := slices.Repeat([]int64{height}, sections)
	add := func(lo, hi int32, size int64) {
		for t := lo; t < hi; t++ {
			room[t] -= size
		}
		in.Lo, in.Hi, in.Size = append(in.Lo, lo), append(in.Hi, hi), append(in.Size, size)
	}
	for range 200 {
		lo := rng.Int32N(int32(sections - 1))
		hi := min(int32(sections), lo+2+rng.Int32N(4))
		if size := 1 + rng.Int64N(height/2); size <= slices.Min(room[lo:hi]) {
			add(lo, hi, size)
		}
	}
	for t := range int32(sections) {
		if room[t] > 0 && !(spare && rng.IntN(3) == 0) {
			add(t, t+1, room[t])
		}
	}
	return in
}

// TestPlain compares searches with plain ones, for one capacity after the other: outcomes, nodes and layouts.
func TestPlain(t *testing.T) {
	nodes, searched, outcomes := int64(0), 0, map[Outcome]int{}
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 5))
		in := crowded(rng, 4+rng.IntN(20))
		switch seed % 4 {
		case 0:
			in = packed(rng, 10, 12, 14)
		case 1:
			in = packed(rng, 20, 60, 40)
		case 2, 3: // of these some fail only after a search
			in = full(rng, 8+rng.IntN(6), 8+rng.Int64N(12), rng.IntN(2) == 0)
		}
		s, p := New(in), &plain{in: in, failed: map[string]int64{}}
		for _, more := range []int64{-1, 1, 0, 0, 2} {
			a := Attempt{Capacity: load(in) + more, Rank: shuffled(rng, len(in.Lo)), Level: rng.IntN(2) == 0, Prefer: Preference(rng.IntN(int(Preferences))), Nodes: 120}
			p.a = a
			got, want := s.Try(a), p.try()
			if got != want || s.Nodes() != p.nodes {
				t.Fatalf("seed %d, load%+d: %v after %d nodes, expected %v after %d", seed, more, got, s.Nodes(), want, p.nodes)
			}
			if got == Fits && len(in.Lo) > 0 && !slices.Equal(s.offset, p.layout) {
				t.Fatalf("seed %d, load%+d: %v, expected %v", seed, more, s.offset, p.layout)
			}
			if outcomes[got]++; got == Fails && more >= 0 {
				searched++
			}
			nodes += p.nodes
		}
	}
	if outcomes[Stopped] < 15 || outcomes[Fits] < 500 || searched < 15 {
		t.Errorf("%v after %d nodes, %d fail after a search", outcomes, nodes, searched)
	}
}
