package gtbm

import (
	"container/heap"

	"gm/internal/swap/lifetimes"
)

// squeezed returns the bytes of the main space in which the groups at its ends never meet, and touch at worst. Offsets are from the end
// that a group begins at.
func (p *Pool) squeezed(step *lifetimes.Step, align int64) int64 {
	var reach [Groups]ends
	most := int64(0)
	for i := range step.Stays {
		s := &step.Stays[i]
		heap.Push(&reach[p.Group[i]], end{p.Offset[i] + rounded(s.Bytes, align), s.End})
		most = max(most, reach[Movable].highest(s.From)+reach[Temporary].highest(s.From))
	}
	return most
}

// ends are the ends of stays, the highest first. Those that are over stay in the heap until they come up.
type ends []end

type end struct{ at, until int64 }

// highest returns the end that is the highest at an event, 0 when there is none.
func (e *ends) highest(event int64) int64 {
	for len(*e) > 0 && (*e)[0].until <= event {
		heap.Pop(e)
	}
	if len(*e) == 0 {
		return 0
	}
	return (*e)[0].at
}

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at > e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }

func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
