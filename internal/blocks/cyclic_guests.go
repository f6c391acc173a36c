package blocks

import (
	"cmp"
	"errors"
	"slices"

	"gm/internal/cuda"
)

// guests are blocks in arenas at places that the plan does not give them: what did not get its place, and what came beside the plan. They are
// numbered like steps, from the number of steps on, and their places are not vacant as long as they are there.
type guests struct {
	steps  []Step
	gone   []int32 // numbers for reuse
	buffer struct{ taken, gaps []free }
}

// stray serves a request that is step i, or none, and does not get the place of the plan. Memory of an arena that nobody needs while the
// request lasts is better than further mappings, and any free memory of an arena is better than none. Small requests are in segments beside the
// pieces.
func (c *Cyclic) stray(i int32, size int64, stream cuda.Stream) (cuda.Ptr, error) {
	if size < largeSize {
		p, err := c.Stitch.Malloc(size, stream, 0)
		if err != nil {
			return c.insist(size, stream, 0, err)
		}
		return p, nil
	}
	if i != none && c.cycle.Steps[i].Arena != NoArena {
		if p := c.mallocMapped(size, stream); p != 0 {
			return p, nil
		}
		if g := c.welcome(size, stream, int(c.cycle.Steps[i].Lasts)-1); g != none {
			return c.place(g), nil
		}
	}
	p, err := c.Stitch.Malloc(size, stream, 0)
	if err == nil || !errors.Is(err, cuda.ErrOutOfMemory) {
		return p, err
	}
	if g := c.welcome(size, stream, 0); g != none {
		return c.place(g), nil
	}
	return c.insist(size, stream, 0, err)
}

// insist serves a request that failed, unless it is to fail at once: the plan is worth less, and is abandoned.
func (c *Cyclic) insist(size int64, stream cuda.Stream, pool Pool, failed error) (cuda.Ptr, error) {
	if !c.begun || c.hasty || !errors.Is(failed, cuda.ErrOutOfMemory) || c.Abandon() != nil {
		return 0, failed
	}
	return c.Stitch.Malloc(size, stream, pool)
}

// welcome returns a new guest with a place that is free, and that the plan does not need within so many steps from the next one on; none if
// there is no such place. Of several places it is the one that is needed last.
func (c *Cyclic) welcome(size int64, stream cuda.Stream, within int) int32 {
	n := roundUp(size, minBlockSize)
	best, at, in := -1, int64(0), NoArena
	for k := range c.arenas {
		if c.arenas[k].stream != stream || c.arenas[k].region == none {
			continue
		}
		for _, gap := range c.gaps(int32(k)) {
			if gap.size < n {
				continue
			}
			for _, offset := range [...]int64{int64(gap.ptr), int64(gap.ptr) + gap.size - n} {
				if ahead := c.untilNeeded(int32(k), offset, n); ahead >= within && ahead > best {
					best, at, in = ahead, offset, int32(k)
				}
			}
		}
	}
	if in == NoArena {
		return none
	}
	return c.newGuest(Step{Size: size, Stream: stream, Arena: in, Offset: at})
}

func (c *Cyclic) newGuest(s Step) int32 {
	g := &c.guests
	var i int32
	if k := len(g.gone) - 1; k >= 0 {
		i, g.gone = g.gone[k], g.gone[:k]
	} else {
		i = int32(len(c.states))
		g.steps = append(g.steps, Step{})
		c.states, c.isLate = append(c.states, stepFree), append(c.isLate, false)
	}
	*c.at(i) = s
	c.isLate[i] = true
	c.late = append(c.late, i)
	return i
}

// mostGaps is how many of the largest gaps of an arena are considered.
const mostGaps = 16

// gaps returns the stretches of an arena that have memory and are free, the largest first. The result is valid until the next call.
func (c *Cyclic) gaps(in int32) []free {
	taken := c.guests.buffer.taken[:0]
	for i, state := range c.states {
		if s := c.at(int32(i)); state != stepFree && s.Arena == in {
			taken = append(taken, free{size: s.end() - s.Offset, ptr: cuda.Ptr(s.Offset)})
		}
	}
	slices.SortFunc(taken, func(a, b free) int { return cmp.Compare(a.ptr, b.ptr) })
	gaps, end := c.guests.buffer.gaps[:0], cuda.Ptr(0)
	backed := cuda.Ptr(c.arenas[in].backed)
	for _, t := range append(taken, free{ptr: backed}) {
		if t.ptr > end {
			gaps = append(gaps, free{size: int64(t.ptr - end), ptr: end})
		}
		end = max(end, t.ptr+cuda.Ptr(t.size))
	}
	c.guests.buffer.taken, c.guests.buffer.gaps = taken, gaps
	slices.SortFunc(gaps, func(a, b free) int { return cmp.Compare(b.size, a.size) })
	return gaps[:min(len(gaps), mostGaps)]
}

// untilNeeded returns how many steps come before the first one whose place overlaps n bytes of an arena, 0 if that is the next step, and as
// many as there are if none does.
func (c *Cyclic) untilNeeded(in int32, offset, n int64) int {
	i := c.next
	if i == none {
		i = 0
	}
	for ahead := range c.cycle.Steps {
		if s := &c.cycle.Steps[i]; s.Arena == in && s.Offset < offset+n && offset < s.end() {
			return ahead
		}
		i = c.after(i)
	}
	return len(c.cycle.Steps)
}
