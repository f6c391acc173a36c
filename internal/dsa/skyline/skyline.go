// Package skyline lays out an instance from the bottom up, the lowest segment of the upper contour first.
//
//   - skyline.go: the contour and the placement
//   - index.go: the buffer of highest rank that fits a segment
//   - probes.go: lower bounds of the peak while a layout grows
package skyline

import (
	"math"

	"gm/internal/dsa/sections"
)

// Skyline lays buffers out from the bottom up. It takes the lowest segment of the upper contour, the leftmost one if several are equally
// low, and places there the buffer of highest rank whose life lies within the segment. If there is none, it lifts
// the segment to its lower neighbour. Ranked by length of life, it is the heuristic of Sekiyama, Imai, Negishi
// and Kawachiya, "Profile-guided memory optimization for deep neural networks" (arXiv 1804.10001).
// Which of several equally low segments comes first is the paper's rule and changes no layout: each is filled, or lifted above all of them,
// without touching the others. Which of two equal buffers comes first does change it: the ranks say.
// It reuses its memory between runs.
type Skyline struct {
	left     index // the buffers not yet placed
	sections int32
	end      []int32 // the segment that begins at section a spans [a, end[a]); 0 where none begins
	begin    []int32 // the segment that ends at section b begins at begin[b]
	height   []int64 // units, by first section
	low      lowest
	probes   probes
}

// Run places all buffers of in by their ranks, writes their offsets to out and returns the peak, both in units. It
// ends early, with ok false, when stop returns true for the peak reached so far.
func (s *Skyline) Run(in *sections.Instance, rank []int32, stop sections.Stop, out []int64) (peak int64, ok bool) {
	s.reset(in, rank)
	reach := int64(0) // the peak will be at least that
	for placed := 0; placed < in.Len(); {
		height, a := s.low.pop()
		if s.end[a] == 0 || s.height[a] != height {
			continue // joined with another segment meanwhile
		}
		for a >= 0 {
			b := s.end[a]
			k := s.left.best(in.First[a], in.First[b], b)
			if k < 0 {
				if least := s.lift(a, b) + s.probes.most(a, b); least > reach {
					if reach = least; stop(reach) {
						return 0, false
					}
				}
				break
			}
			top := height + in.Size[k]
			peak = max(peak, top)
			if top > reach || placed%sections.StopEvery == 0 {
				if reach = max(reach, top); stop(reach) {
					return 0, false
				}
			}
			s.left.remove(k)
			s.probes.place(in.Lo[k], in.Hi[k], in.Size[k])
			out[k] = height
			placed++
			a = s.cover(a, in.Lo[k], in.Hi[k], top)
		}
	}
	return peak, true
}

// reset makes the contour one segment at 0.
func (s *Skyline) reset(in *sections.Instance, rank []int32) {
	s.left.reset(in, rank)
	s.probes.reset(in)
	s.sections = int32(in.Sections())
	if n := in.Sections() + 1; len(s.height) < n {
		s.end, s.begin, s.height = make([]int32, n), make([]int32, n), make([]int64, n)
	}
	clear(s.end)
	s.low = s.low[:0]
	s.join(0, s.sections, 0)
}

// lift raises the segment [a, b) to its lower neighbour. Buffers remain, so it does not span all sections.
func (s *Skyline) lift(a, b int32) int64 {
	height := int64(math.MaxInt64)
	if a > 0 {
		height = s.height[s.begin[a]]
	}
	if b < s.sections {
		height = min(height, s.height[b])
	}
	s.join(a, b, height)
	return height
}

// cover raises the part [lo, hi) of the segment at a to top. It returns the beginning of the leftmost remaining piece of the segment, or
// -1 when nothing remains.
func (s *Skyline) cover(a, lo, hi int32, top int64) int32 {
	b, height := s.end[a], s.height[a]
	rest := int32(-1)
	if hi < b {
		s.set(hi, b, height)
		rest = hi
	}
	if lo > a {
		if rest >= 0 {
			s.low.push(height, rest)
		}
		s.set(a, lo, height)
		rest = a
	}
	s.join(lo, hi, top)
	return rest
}

// join makes [a, b) a segment at height, and merges it with neighbours of the same height.
func (s *Skyline) join(a, b int32, height int64) {
	if b < s.sections && s.height[b] == height {
		right := s.end[b]
		s.end[b] = 0
		b = right
	}
	if a > 0 && s.height[s.begin[a]] == height {
		s.end[a] = 0
		s.set(s.begin[a], b, height) // in the heap already
		return
	}
	s.set(a, b, height)
	s.low.push(height, a)
}

// set makes [a, b) a segment.
func (s *Skyline) set(a, b int32, height int64) {
	s.end[a], s.begin[b], s.height[a] = b, a, height
}

// lowest is a heap of segments, the lowest first, then the leftmost. A segment that was joined with another stays
// in the heap, and is skipped when it is popped.
type lowest []contour

type contour struct {
	height int64
	a      int32
}

func (c contour) below(d contour) bool {
	return c.height < d.height || c.height == d.height && c.a < d.a
}

func (h *lowest) push(height int64, a int32) {
	q := append(*h, contour{height, a})
	*h = q
	item := q[len(q)-1]
	i := len(q) - 1
	for i > 0 && item.below(q[(i-1)/2]) {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i] = item
}

func (h *lowest) pop() (height int64, a int32) {
	q := *h
	top, item := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	*h = q
	if len(q) == 0 {
		return top.height, top.a
	}
	i := 0
	for child := 1; child < len(q); child = 2*i + 1 {
		if child+1 < len(q) && q[child+1].below(q[child]) {
			child++
		}
		if !q[child].below(item) {
			break
		}
		q[i] = q[child]
		i = child
	}
	q[i] = item
	return top.height, top.a
}

// Work returns how many nodes of the index all runs visited. The time of a run is proportional to it.
func (s *Skyline) Work() int64 { return s.left.visits }
