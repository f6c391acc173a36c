package blocks

import (
	"math"
	"math/bits"
	"slices"

	"gm/internal/cuda"
)

// heap is the memory of one stream.
type heap struct {
	number  int32
	stream  cuda.Stream
	free    ranges // free memory, at the homes of its pieces
	idle    idleSet
	regions []int32 // its ranges of addresses
	main    int32   // the main region in which new pieces are mapped, none if there is none
	classes []class // the blocks that it ever handed out, by size
	bySize  index   // the class of a size
	warm    []int32 // the classes that have warm blocks
	passing passing // the progress of its stream
}

// class is the blocks of one size.
type class struct {
	number int32
	size   int64
	places []int32  // where such blocks were, in the order of first use
	warm   []uint64 // a bit for each place, set where there is a warm block
	low    int      // no word of warm before this one has a bit
	free   []uint64 // a bit for each place, set where one is free
}

// place is where a block was handed out.
type place struct {
	ptr    cuda.Ptr
	size   int64
	heap   int32
	class  int32
	region int32
	rank   int32 // in its class's places
	epoch  int64 // of the heap, when it was last freed
	state  placeState
}

type placeState uint8

const (
	placeFree    placeState = iota // its addresses may be used for anything
	placeLive                      // handed out
	placePending                   // freed, but still used by another stream
	placeWarm                      // freed, and not yet joined with other free memory
)

// heapOf returns the heap of a stream.
func (s *Stitch) heapOf(stream cuda.Stream) *heap {
	if s.recent != nil && s.recent.stream == stream {
		return s.recent
	}
	i, ok := s.byStream[stream]
	if !ok {
		i = s.bareHeap()
		s.heaps[i].stream = stream
		s.byStream[stream] = i
	}
	s.recent = s.heaps[i]
	return s.recent
}

// manyHeaps is the number of heaps above which those that hold nothing are reused, as a job may create new streams without end.
const manyHeaps = 128

// bareHeap returns a heap that holds nothing.
func (s *Stitch) bareHeap() int32 {
	if len(s.heaps) >= s.maxHeaps {
		for i, h := range s.heaps {
			if len(h.regions) == 0 && h.idle.empty() {
				s.clear(h)
				return int32(i)
			}
		}
	}
	s.heaps = append(s.heaps, &heap{number: int32(len(s.heaps)), main: none, bySize: newSmallIndex()})
	return int32(len(s.heaps) - 1)
}

// clear resets a heap that holds nothing. What other heaps know about its epochs stays true.
func (s *Stitch) clear(h *heap) {
	delete(s.byStream, h.stream)
	for i := range h.classes {
		for _, id := range h.classes[i].places {
			s.drop(id)
		}
	}
	for _, e := range h.passing.events {
		_ = s.dev.EventDestroy(e.event) // the stream may no longer exist
	}
	begin := h.passing.epoch + 1
	*h = heap{
		number: h.number, main: none, free: h.free, idle: h.idle, classes: h.classes[:0], bySize: newSmallIndex(), warm: h.warm[:0],
		passing: passing{epoch: begin, passed: begin},
	}
}

// class returns the class of blocks of n bytes.
func (h *heap) class(n int64) *class {
	if i, ok := h.bySize.Get(cuda.Ptr(n)); ok {
		return &h.classes[i]
	}
	i := int32(len(h.classes))
	h.classes = append(h.classes, class{number: i, size: n})
	h.bySize.Put(cuda.Ptr(n), i)
	return &h.classes[i]
}

// pop takes the warm block of a class whose place comes first. It returns none if the class has no warm block. Taking the first place
// rather than the last freed one makes a job that repeats itself use the same places each time.
func (c *class) pop() int32 {
	for ; c.low < len(c.warm); c.low++ {
		if word := &c.warm[c.low]; *word != 0 {
			rank := 64*c.low + bits.TrailingZeros64(*word)
			*word &= *word - 1
			return c.places[rank]
		}
	}
	return none
}

// cool makes a block that is no longer used warm: the next request of its size finds it.
func (s *Stitch) cool(id int32) {
	p := &s.places[id]
	h := s.heaps[p.heap]
	c := &h.classes[p.class]
	word := int(p.rank / 64)
	if c.low == len(c.warm) {
		h.warm = append(h.warm, c.number)
	}
	c.warm[word] |= 1 << (p.rank % 64)
	c.low = min(c.low, word)
	p.state, p.epoch = placeWarm, h.passing.epoch
	h.passing.frees++
}

// settle joins the warm blocks of a heap with its free memory.
func (s *Stitch) settle(h *heap) {
	for _, i := range h.warm {
		c := &h.classes[i]
		for id := c.pop(); id != none; id = c.pop() {
			p := &s.places[id]
			p.state = placeFree
			c.free[p.rank/64] |= 1 << (p.rank % 64)
			s.putBack(h, stretch{p.ptr, p.size, p.region}, p.epoch)
		}
	}
	h.warm = h.warm[:0]
}

// triesOfPlaces is how many places of a size are examined in search of a free one.
const triesOfPlaces = 256

// revisit takes the first free place of class c and returns it, none if there is none. If a block fits at another address, a place is passed
// over that breaks more of the wholly free pieces, by more than the block's size.
func (s *Stitch) revisit(h *heap, c *class, fit stretch, fits bool) int32 {
	most := int64(-1)
	rank := c.nextFree(0)
	for tries := 0; tries < triesOfPlaces && rank != none; tries++ {
		id := c.places[rank]
		rank = c.nextFree(rank + 1)
		at := stretch{s.places[id].ptr, c.size, s.places[id].region}
		if !s.isOpen(h, &s.places[id]) {
			continue
		}
		if fits && at.ptr != fit.ptr {
			if most < 0 {
				most = s.breaks(fit, math.MaxInt64) + c.size
			}
			if s.breaks(at, most) > most {
				continue
			}
		}
		s.take(h, at)
		return id
	}
	return none
}

// isOpen reports whether the memory of a place is free, wherever it is offered.
func (s *Stitch) isOpen(h *heap, p *place) bool {
	id := s.regions[p.region].at(p.ptr)
	if id == none {
		return false
	}
	if first := &s.pieces[s.mappings[id].piece]; first.used == first.size { // as in most places that are not open
		return false
	}
	if h.free.holds(p.ptr, p.size) {
		return true
	}
	away, ok := s.survey(h, p)
	return ok && len(away) == 0
}

// nextFree returns the first rank, starting at rank, whose place is free, none if there is none.
func (c *class) nextFree(rank int32) int32 {
	for word := int(rank / 64); word < len(c.free); word++ {
		if left := c.free[word] >> (rank % 64); left != 0 {
			return rank + int32(bits.TrailingZeros64(left))
		}
		rank = int32(word+1) * 64
	}
	return none
}

// placeAt takes free memory as a place of class c.
func (s *Stitch) placeAt(h *heap, c *class, at stretch) int32 {
	s.take(h, at)
	id, ok := s.byPtr.Get(at.ptr)
	if !ok || s.places[id].size != c.size || s.places[id].heap != h.number {
		id = s.newPlace(c)
	}
	p := &s.places[id]
	p.ptr, p.size, p.heap, p.class, p.region = at.ptr, c.size, h.number, c.number, at.region
	return id
}

// newPlace returns a new place at the end of class c. The caller fills it in.
func (s *Stitch) newPlace(c *class) int32 {
	var id int32
	if k := len(s.gone) - 1; k >= 0 {
		id, s.gone = s.gone[k], s.gone[:k]
	} else {
		id = int32(len(s.places))
		s.places = append(s.places, place{})
	}
	c.add(id, &s.places[id])
	return id
}

func (c *class) add(id int32, p *place) {
	p.rank = int32(len(c.places))
	c.places = append(c.places, id)
	if p.rank%64 == 0 {
		c.warm, c.free = append(c.warm, 0), append(c.free, 0)
		if c.low == len(c.warm)-1 { // there was no warm block, and there is none
			c.low = len(c.warm)
		}
	}
}

// manyPlaces is the most places that are remembered, apart from those of blocks in use.
const manyPlaces = 1 << 17

// forgetPlaces forgets where free blocks were, and sizes that are not in use, once there are too many places: a long job may keep
// requesting new sizes.
func (s *Stitch) forgetPlaces() {
	if len(s.places)-len(s.gone) < s.maxPlaces {
		return
	}
	defer func() { s.maxPlaces = max(s.maxPlaces, 2*(len(s.places)-len(s.gone))) }()
	for _, h := range s.heaps {
		s.settle(h)
		h.bySize = newSmallIndex()
		kept := h.classes[:0]
		for _, c := range h.classes {
			used := slices.DeleteFunc(c.places, s.drop)
			if len(used) == 0 {
				continue
			}
			c = class{number: int32(len(kept)), size: c.size}
			for _, id := range used {
				s.places[id].class = c.number
				c.add(id, &s.places[id])
			}
			h.bySize.Put(cuda.Ptr(c.size), c.number)
			kept = append(kept, c)
		}
		clear(h.classes[len(kept):])
		h.classes = kept
	}
}

// drop forgets a place unless its block is in use, and reports whether it did.
func (s *Stitch) drop(id int32) bool {
	p := &s.places[id]
	if p.state != placeFree {
		return false
	}
	if known, ok := s.byPtr.Get(p.ptr); ok && known == id {
		s.byPtr.Take(p.ptr)
	}
	s.gone = append(s.gone, id)
	return true
}
