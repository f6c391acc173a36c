package remat

import (
	"time"

	"gm/internal/bitset"
)

// change is a change of a state.
type change struct {
	what  what
	on    bool
	t, v  int32   // tensor and stage, or stages from v on
	end   int32   // to this one
	bytes int64   // that are added, or that there are
	again []int32 // what is recomputed
}

type what uint8

const (
	needed what = iota
	held
	shifted
	replaced
	measured
)

func (s *state) setNeed(t, v int32, on bool) { s.do(change{what: needed, t: t, v: v, on: on}) }
func (s *state) setHeld(t, v int32, on bool) { s.do(change{what: held, t: t, v: v, on: on}) }
func (s *state) setLocal(v int32, bytes int64) {
	if s.local[v] != bytes {
		s.do(change{what: measured, v: v, bytes: bytes})
	}
}
func (s *state) replace(v int32, again []int32) { s.do(change{what: replaced, v: v, again: again}) }

// shift adds bytes to those that are held when the stages from first to last begin.
func (s *state) shift(first, last int32, bytes int64) {
	s.do(change{what: shifted, v: first, end: last, bytes: bytes})
}

// mark returns how many changes there are to undo.
func (s *state) mark() int { return len(s.undo) }

// forget makes them final.
func (s *state) forget() { s.undo = s.undo[:0] }

func (s *state) do(c change) { s.undo = append(s.undo, s.apply(c)) }

// back undoes all changes but the first so many.
func (s *state) back(mark int) {
	for len(s.undo) > mark {
		c := s.undo[len(s.undo)-1]
		s.undo = s.undo[:len(s.undo)-1]
		s.apply(c)
	}
}

// apply makes a change and returns what undoes it.
func (s *state) apply(c change) change {
	s.work += 1 + int64(len(c.again))
	switch c.what {
	case needed:
		put(s.needs[c.t], int(c.v), c.on)
		c.on = !c.on
	case held:
		on := has(s.held[c.t], int(c.v))
		put(s.held[c.t], int(c.v), c.on)
		c.on = on
	case shifted:
		s.work += int64(c.end-c.v) / 8
		start, local, room := s.start[c.v:c.end+1], s.local[c.v:c.end+1], s.room[c.v:c.end+1]
		for i, used := range start {
			beyond := used + local[i] - room[i]
			s.over += max(0, beyond+c.bytes) - max(0, beyond)
			start[i] = used + c.bytes
		}
		c.bytes = -c.bytes
	case replaced:
		s.step += s.took(c.again) - s.took(s.again[c.v])
		s.again[c.v], c.again = c.again, s.again[c.v]
	case measured:
		s.over -= s.excess(c.v)
		s.local[c.v], c.bytes = c.bytes, s.local[c.v]
		s.over += s.excess(c.v)
	}
	return c
}

func (s *state) took(tensors []int32) (took time.Duration) {
	for _, t := range tensors {
		took += s.Graph.Tensors[t].Recompute
	}
	return took
}

func put(b bitset.Set, i int, on bool) {
	if on {
		b.Add(i)
	} else {
		b.Remove(i)
	}
}
