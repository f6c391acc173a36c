package draft

import "time"

// Queue sets when the copies of trips to the host begin, and sorts trips in that order: whenever the lane is idle, the written tensor goes that
// has to be freed first. Tensors are written once, so a copy need not wait for the last use before its trip.
// Trips are in the order in which the tensors are made.
func (p *Problem) Queue(trips []Trip) {
	w := &p.spare
	waiting := &w.heap
	waiting.begin(trips, len(p.Graph.Tensors))
	w.flags = Zeroed(w.flags, len(p.Graph.Tensors))
	copied := w.flags
	order := w.order[:0]
	lane, last := time.Duration(0), int32(0)
	for next := 0; next < len(trips) || len(waiting.heap) > 0; {
		if len(waiting.heap) == 0 {
			lane = max(lane, p.Paced[p.Made(&trips[next])+1])
		}
		for ; next < len(trips) && p.Paced[p.Made(&trips[next])+1] <= lane; next++ {
			waiting.push(next)
		}
		x := waiting.pop()
		if x.Bytes > 0 && !copied[x.Tensor] {
			copied[x.Tensor] = true
			x.Out = max(p.Made(&x)+1, last)
			last = x.Out
			lane += p.Limits.Link.OutTime(x.Bytes)
		}
		order = append(order, x)
	}
	w.order = order
	copy(trips, order)
}

func (p *Problem) Made(x *Trip) int32 { return p.Graph.Tensors[x.Tensor].Made }

// deadlines is a heap of trips. On top is the trip of the tensor that is freed first, on this trip or another.
type deadlines struct {
	all   []Trip
	heap  []deadline
	first []int32 // the operator at which each tensor is freed first
}

// deadline is when a trip's tensor is freed: first, and on this trip.
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

// begin empties the heap for trips of a number of tensors.
func (h *deadlines) begin(trips []Trip, tensors int) {
	h.all, h.heap, h.first = trips, h.heap[:0], Zeroed(h.first, tensors)
	for i := range trips {
		if first := &h.first[trips[i].Tensor]; *first == 0 || trips[i].Free < *first {
			*first = trips[i].Free
		}
	}
}

// push adds a trip, by its number.
func (h *deadlines) push(trip int) {
	x := &h.all[trip]
	added := deadline{h.first[x.Tensor], x.Free, x.Tensor, int32(trip)}
	h.heap = append(h.heap, added)
	at := len(h.heap) - 1
	for ; at > 0 && added.before(h.heap[(at-1)/2]); at = (at - 1) / 2 {
		h.heap[at] = h.heap[(at-1)/2]
	}
	h.heap[at] = added
}

func (h *deadlines) pop() Trip {
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
