package canonical

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"gm/internal/dsa/exact"
	"gm/internal/dsa/sections"
)

// Search looks for a layout of an instance within a capacity, in one order. A node of its tree is a set of placed buffers. The next buffer has the
// least offset that any can have, or else one below which no other buffer would fit. It has its turn after the last one, so that a
// layout is found in one order of its buffers alone.
type Search struct {
	*state
	attempt Attempt
	nodes   int64
	ask     int64        // the work at which Stop is called next
	queue   []turn       // the turns of all nodes on the way
	values  [][3]float64 // of each buffer, for the letters of the key
}

// Attempt is the capacity, the order and the limits of one search.
type Attempt struct {
	Capacity int64        // units
	By       sections.Key // up to three of the letters A, T and W; T is the load of the buffers left
	Nodes    int64        // the search stops after this many nodes
	Stop     func() bool  // or when this returns true; it is called now and then
}

// Orders are minimalloc's orders of the buffers that can have the same offset.
func Orders() []sections.Key { return []sections.Key{"WAT", "TAW", "TWA"} }

// New returns a search of an instance.
func New(in *sections.Instance) *Search {
	return &Search{state: newState(in), values: make([][3]float64, in.Len())}
}

// Try searches.
func (s *Search) Try(a Attempt) exact.Outcome {
	s.reset(a.Capacity)
	s.attempt, s.nodes, s.work = a, 0, 0
	if !s.fits(0, int32(len(s.floor)), 0) {
		return exact.Fails
	}
	all := make([]int32, len(s.offset))
	for i := range all {
		all[i] = int32(i)
	}
	return s.parts(all)
}

// Offset returns the offset of a buffer in the layout of the last attempt, in units. It is valid when the outcome was [exact.Fits].
func (s *Search) Offset(i int) int64 { return s.offset[i] }

// Nodes returns how many nodes the last attempt visited.
func (s *Search) Nodes() int64 { return s.nodes }

// Work returns how many buffers and sections the last attempt looked at. Its time is proportional to that.
func (s *Search) Work() int64 { return s.work }

// turn is when a buffer is placed: by its offset, and then by its rank in a part.
type turn struct {
	offset int64
	rank   int32
}

func (t turn) before(u turn) bool {
	return t.offset < u.offset || t.offset == u.offset && t.rank < u.rank
}

// parts searches the parts into which the buffers left of those given fall, one after another.
func (s *Search) parts(buffers []int32) exact.Outcome {
	left := slices.DeleteFunc(slices.Clone(buffers), func(i int32) bool { return s.offset[i] != unplaced })
	slices.SortFunc(left, func(i, j int32) int { return cmp.Compare(s.in.Lo[i], s.in.Lo[j]) })
	s.work += int64(len(buffers) + len(left)*bits.Len(uint(len(left))))
	for len(left) > 0 {
		n, x, y := 0, s.in.Lo[left[0]], s.in.Hi[left[0]]
		for ; n < len(left) && s.in.Lo[left[n]] < y; n++ {
			y = max(y, s.in.Hi[left[n]])
		}
		s.rank(left[:n])
		if o := s.node(x, y, left[:n], turn{}); o != exact.Fits {
			return o
		}
		left = left[n:]
	}
	return exact.Fits
}

// rank orders the buffers of a part by the key of the attempt.
func (s *Search) rank(buffers []int32) {
	for _, i := range buffers {
		life, size := s.in.Features.Life[i], float64(s.in.Size[i])
		for k, letter := range s.attempt.By {
			switch letter {
			case 'T':
				s.values[i][k] = float64(slices.Max(s.left[s.in.Lo[i]:s.in.Hi[i]]))
				s.work += int64(s.in.Hi[i] - s.in.Lo[i])
			case 'W':
				s.values[i][k] = life
			case 'A':
				s.values[i][k] = life * size
			default:
				panic("BUG: no order by " + string(letter))
			}
		}
	}
	s.work += int64(len(buffers) * bits.Len(uint(len(buffers))))
	slices.SortFunc(buffers, func(i, j int32) int {
		return cmp.Or(slices.Compare(s.values[j][:], s.values[i][:]), cmp.Compare(s.in.ID[i], s.in.ID[j]))
	})
}

// askEvery is the work between two calls of Stop, and it takes about a millisecond.
const askEvery = 1 << 20

// node places one of the buffers left of a part, whose turn is not before from.
func (s *Search) node(x, y int32, buffers []int32, from turn) exact.Outcome {
	s.work += int64(len(buffers) + int(y-x))
	if s.nodes == s.attempt.Nodes || s.stopped() {
		return exact.Stopped
	}
	s.nodes++
	before := len(s.queue)
	defer func() { s.queue = s.queue[:before] }()
	if !s.enqueue(buffers, from) {
		return exact.Fits
	}
	for _, t := range s.queue[before:] {
		i, length := buffers[t.rank], len(s.trail)
		s.place(i)
		if s.fits(x, y, t.offset) {
			if o := s.proceed(x, y, buffers, t); o != exact.Fails {
				return o
			}
		}
		alone := s.alone(i)
		s.undo(length)
		if alone {
			break
		}
	}
	return exact.Fails
}

// stopped asks whether to stop, at the first node and now and then.
func (s *Search) stopped() bool {
	if s.nodes > 0 && s.work < s.ask {
		return false
	}
	s.ask = s.work + askEvery
	return s.attempt.Stop()
}

// enqueue appends the turns of the buffers that may be next to the queue, in order. It returns false when no buffer is left.
func (s *Search) enqueue(buffers []int32, from turn) bool {
	before := len(s.queue)
	left := false
	height := int64(math.MaxInt64) // at which the first buffer left could end: above it, a gap would remain that it fits
	for _, i := range buffers {
		if s.offset[i] == unplaced {
			left, height = true, min(height, s.least[i]+s.in.Size[i])
		}
	}
	for rank, i := range buffers {
		t := turn{s.least[i], int32(rank)}
		if s.offset[i] != unplaced || t.offset >= height || t.before(from) {
			continue
		}
		k := len(s.queue)
		s.queue = append(s.queue, t)
		for ; k > before && t.before(s.queue[k-1]); k-- {
			s.queue[k] = s.queue[k-1]
		}
		s.queue[k] = t
	}
	return left
}

// proceed searches what is left of a part after a placement, and each part of it by itself if it falls apart.
func (s *Search) proceed(x, y int32, buffers []int32, last turn) exact.Outcome {
	i := buffers[last.rank]
	for t := s.in.Lo[i] + 1; t < s.in.Hi[i]; t++ {
		if s.cross[t] == 0 {
			return s.parts(buffers)
		}
	}
	return s.node(x, y, buffers, last)
}

// alone reports whether no buffer left lives at a moment of a placed one: then nothing depends on where that is.
func (s *Search) alone(i int32) bool {
	for t := s.in.Lo[i]; t < s.in.Hi[i]; t++ {
		if s.left[t] > 0 {
			return false
		}
	}
	return true
}
