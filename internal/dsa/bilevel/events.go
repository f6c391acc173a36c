package bilevel

import (
	"cmp"
	"slices"

	"gm/internal/dsa"
	"gm/internal/dsa/sections"
)

// events are the births and deaths of a problem in order, deaths before births at the same time. Buffers that
// conflict with no other have no events.
type events struct {
	buffer []int32 // in the problem, of each event
	mate   []int32 // of a birth, the event of the death; of a death, the event of the birth
	bound  int64   // bytes: the greatest load
}

func newEvents(p *dsa.Problem) *events {
	births := sections.ByStart(p)
	deaths := slices.Clone(births)
	slices.SortStableFunc(deaths, func(a, b int32) int { return cmp.Compare(p.End[a], p.End[b]) })
	e := &events{buffer: make([]int32, 0, 2*len(births)), mate: make([]int32, 2*len(births))}
	born := make([]int32, p.Len())
	live := int64(0) // units
	for len(deaths) > 0 {
		at := int32(len(e.buffer))
		if len(births) > 0 && p.Start[births[0]] < p.End[deaths[0]] {
			i := births[0]
			births = births[1:]
			e.buffer = append(e.buffer, i)
			born[i] = at
			live += p.Units(int(i))
			e.bound = max(e.bound, live*p.Align)
			continue
		}
		i := deaths[0]
		deaths = deaths[1:]
		e.buffer = append(e.buffer, i)
		e.mate[at], e.mate[born[i]] = born[i], at
		live -= p.Units(int(i))
	}
	return e
}

// symbols returns a number for each event, which depends on the size and on whether it is a birth. It does not depend on which birth a
// death belongs to: the death of a tensor that a layer saved for its backward pass is the same symbol in all layers, however
// long ago the birth was.
func (e *events) symbols(p *dsa.Problem) []uint64 {
	symbols := make([]uint64, len(e.buffer))
	for at, i := range e.buffer {
		symbols[at] = uint64(p.Units(int(i))) << 1
		if int(e.mate[at]) < at {
			symbols[at]++
		}
	}
	return symbols
}
