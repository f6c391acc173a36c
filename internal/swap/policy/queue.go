package policy

import (
	"cmp"
	"time"
)

// queue sets when the copies of trips to the host begin, and puts trips in that order: whenever the lane is idle, what has to be given back
// first of all that is written by then. Tensors are written once, so that a copy need not wait for the last use before its trip.
// Trips are in the order in which the tensors are made.
func (p *problem) queue(trips []trip) {
	w := &p.work
	waiting := &w.heap
	waiting.begin(trips, len(p.graph.Tensors))
	w.flags = zeroed(w.flags, len(p.graph.Tensors))
	copied := w.flags
	order := w.order[:0]
	lane, last := time.Duration(0), int32(0)
	for next := 0; next < len(trips) || len(waiting.trips) > 0; {
		if len(waiting.trips) == 0 {
			lane = max(lane, p.begin[p.made(&trips[next])+1])
		}
		for ; next < len(trips) && p.begin[p.made(&trips[next])+1] <= lane; next++ {
			waiting.push(trips[next])
		}
		x := waiting.pop()
		if x.bytes > 0 && !copied[x.tensor] {
			copied[x.tensor] = true
			x.out = max(p.made(&x)+1, last)
			last = x.out
			lane += p.limits.Link.OutTime(x.bytes)
		}
		order = append(order, x)
	}
	w.order = order
	copy(trips, order)
}

func (p *problem) made(x *trip) int32 { return p.graph.Tensors[x.tensor].Made }

// deadlines is a heap of trips. On top is that of the tensor that is given back first, on this trip or another.
type deadlines struct {
	trips []trip
	first []int32 // the operator at which each tensor is given back first
}

// begin empties the heap for some trips of so many tensors.
func (h *deadlines) begin(trips []trip, tensors int) {
	h.trips, h.first = h.trips[:0], zeroed(h.first, tensors)
	for i := range trips {
		if first := &h.first[trips[i].tensor]; *first == 0 || trips[i].free < *first {
			*first = trips[i].free
		}
	}
}

func (h *deadlines) less(i, j int) bool {
	x, y := &h.trips[i], &h.trips[j]
	return cmp.Or(h.first[x.tensor]-h.first[y.tensor], x.free-y.free, x.tensor-y.tensor) < 0
}

func (h *deadlines) swap(i, j int) { h.trips[i], h.trips[j] = h.trips[j], h.trips[i] }

func (h *deadlines) push(x trip) {
	h.trips = append(h.trips, x)
	for i := len(h.trips) - 1; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		h.swap(i, (i-1)/2)
	}
}

func (h *deadlines) pop() trip {
	top, last := h.trips[0], len(h.trips)-1
	h.trips[0] = h.trips[last]
	h.trips = h.trips[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return top
		}
		h.swap(i, least)
		i = least
	}
}
