package dsa

import (
	"fmt"
	"math"

	"gm/internal/dsa/residue"
)

// Groups are the sets of buffers that are tied to each other. A group is rigid: its base, one number, determines all of its offsets. Most
// have a single buffer. Lengths are in units of the problem's alignment.
type Groups struct {
	Of []int32 // the group of each buffer
	At []int64 // units: the offset of each buffer above the base of its group; 0 for the lowest

	// One element per group, in the order of their first buffers.
	Step, Remainder []int64 // the base is rest modulo step
	Fixed           []int64 // units: the base, or [Free]
	height          []int64 // units: the offset of the highest buffer above the base
}

// NewGroups returns the groups of a problem. The error wraps [ErrInvalid] when ties, alignments and fixed offsets contradict one another.
func NewGroups(p *Problem) (*Groups, error) {
	links, err := newLinks(p)
	if err != nil {
		return nil, err
	}
	n := p.Len()
	g := &Groups{Of: make([]int32, n), At: make([]int64, n)}
	for i := range g.Of {
		g.Of[i] = ungrouped
	}
	members := make([]int32, 0, 1)
	for i := range int32(n) {
		if g.Of[i] != ungrouped {
			continue
		}
		if members, err = g.collect(links, i, members[:0]); err != nil {
			return nil, err
		}
		if err := g.add(p, members); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// collect finds the buffers tied to the first, and their distances from the lowest of them.
func (g *Groups) collect(links *links, first int32, members []int32) ([]int32, error) {
	g.Of[first] = int32(len(g.Step))
	members = append(members, first)
	low := int64(0)
	for next := 0; next < len(members); next++ {
		a := members[next]
		for _, l := range links.from(a) {
			at := g.At[a] + l.delta
			switch {
			case max(at, -at) > maxDelta:
				return nil, fmt.Errorf("%w: the ties of buffer %d reach too far", ErrInvalid, l.to)
			case g.Of[l.to] == ungrouped:
				g.Of[l.to], g.At[l.to] = g.Of[first], at
				low = min(low, at)
				members = append(members, l.to)
			case g.At[l.to] != at:
				return nil, fmt.Errorf("%w: the ties of buffers %d and %d contradict one another", ErrInvalid, a, l.to)
			}
		}
	}
	for _, i := range members {
		g.At[i] -= low
	}
	return members, nil
}

// add makes tied buffers a group.
func (g *Groups) add(p *Problem, members []int32) error {
	base, fixed, height := residue.Class{Step: 1}, int64(Free), int64(0)
	for _, i := range members {
		height = max(height, g.At[i])
		step := p.step(i)
		var ok bool
		if base, ok = base.And(residue.Class{Step: step, Remainder: residue.Mod(-g.At[i], step)}); !ok {
			return fmt.Errorf("%w: no offset suits the alignments of the buffers tied to buffer %d", ErrInvalid, i)
		}
		offset := p.fixed(i)
		if offset == Free {
			continue
		}
		if offset%p.Align != 0 || offset/p.Align%step != 0 {
			return fmt.Errorf("%w: buffer %d is fixed at %d, which is not aligned", ErrInvalid, i, offset)
		}
		at := offset/p.Align - g.At[i]
		if at < 0 || fixed != Free && at != fixed {
			return fmt.Errorf("%w: buffer %d is fixed where its ties do not allow it", ErrInvalid, i)
		}
		fixed = at
	}
	if fixed != Free && residue.Mod(fixed, base.Step) != base.Remainder {
		return fmt.Errorf("%w: a buffer tied to buffer %d is not aligned where it is fixed", ErrInvalid, members[0])
	}
	g.Step, g.Remainder = append(g.Step, base.Step), append(g.Remainder, base.Remainder)
	g.Fixed, g.height = append(g.Fixed, fixed), append(g.height, height)
	return nil
}

// links are the ties as a graph.
type links struct {
	first []int32 // the links of buffer i are all[first[i]:first[i+1]]; empty without ties
	all   []link
}

// link is the distance of another buffer above a buffer.
type link struct {
	to    int32
	delta int64 // units
}

// maxDelta is the greatest distance of tied buffers, in bytes. The sum of two fits an int64.
const maxDelta = math.MaxInt64 / 2

// newLinks returns the links of each tie, one from each end.
func newLinks(p *Problem) (*links, error) {
	if len(p.Ties) == 0 {
		return &links{}, nil
	}
	x := &links{first: make([]int32, p.Len()+2), all: make([]link, 2*len(p.Ties))}
	for i, t := range p.Ties {
		switch {
		case min(t.A, t.B) < 0 || int(max(t.A, t.B)) >= p.Len():
			return nil, fmt.Errorf("%w: tie %d is of buffers %d and %d", ErrInvalid, i, t.A, t.B)
		case t.Delta%p.Align != 0 || t.Delta > maxDelta || t.Delta < -maxDelta:
			return nil, fmt.Errorf("%w: tie %d has a distance of %d, expected a multiple of %d", ErrInvalid, i, t.Delta, p.Align)
		}
		x.first[t.A+2]++
		x.first[t.B+2]++
	}
	for i := range p.Len() {
		x.first[i+2] += x.first[i+1]
	}
	for _, t := range p.Ties {
		delta := t.Delta / p.Align
		x.all[x.first[t.A+1]] = link{t.B, delta}
		x.first[t.A+1]++
		x.all[x.first[t.B+1]] = link{t.A, -delta}
		x.first[t.B+1]++
	}
	return x, nil
}

// from returns the links of a buffer.
func (x *links) from(i int32) []link {
	if x.first == nil {
		return nil
	}
	return x.all[x.first[i]:x.first[i+1]]
}

// ungrouped marks a buffer that belongs to no group yet.
const ungrouped = -1
