package policy

import "time"

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
	for next := 0; next < len(trips) || len(waiting.heap) > 0; {
		if len(waiting.heap) == 0 {
			lane = max(lane, p.begin[p.made(&trips[next])+1])
		}
		for ; next < len(trips) && p.begin[p.made(&trips[next])+1] <= lane; next++ {
			waiting.push(next)
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
	all   []trip
	heap  []deadline
	first []int32 // the operator at which each tensor is given back first
}

// deadline is when a trip's tensor is given back: first, and on this trip.
type deadline struct {
	first, free  int32
	tensor, trip int32
}

func (x deadline) before(y deadline) bool {
	if x.first != y.first {
		return x.first < y.first
	}
	if x.free != y.free {
		return x.free < y.free
	}
	return x.tensor < y.tensor
}

// begin empties the heap for some trips of so many tensors.
func (h *deadlines) begin(trips []trip, tensors int) {
	h.all, h.heap, h.first = trips, h.heap[:0], zeroed(h.first, tensors)
	for i := range trips {
		if first := &h.first[trips[i].tensor]; *first == 0 || trips[i].free < *first {
			*first = trips[i].free
		}
	}
}

// push adds a trip, by its number.
func (h *deadlines) push(trip int) {
	x := &h.all[trip]
	added := deadline{h.first[x.tensor], x.free, x.tensor, int32(trip)}
	h.heap = append(h.heap, added)
	at := len(h.heap) - 1
	for ; at > 0 && added.before(h.heap[(at-1)/2]); at = (at - 1) / 2 {
		h.heap[at] = h.heap[(at-1)/2]
	}
	h.heap[at] = added
}

func (h *deadlines) pop() trip {
	top, last := h.heap[0].trip, len(h.heap)-1
	moved := h.heap[last]
	h.heap = h.heap[:last]
	for at := 0; at < last; {
		child := 2*at + 1
		if child+1 < last && h.heap[child+1].before(h.heap[child]) {
			child++
		}
		if child >= last || !h.heap[child].before(moved) {
			h.heap[at] = moved
			break
		}
		h.heap[at] = h.heap[child]
		at = child
	}
	return h.all[top]
}
