package dsa

// onlineBestFit takes births and deaths as they come and gives each buffer the smallest gap that holds it, the lowest
// of those: what an allocator without size classes would do. When all sizes are equal it meets the bound.
type onlineBestFit struct{}

// layout implements method.
func (onlineBestFit) layout(in *instance, w *workspace, stop stopFunc, out []int64) (peak int64, ok bool) {
	deaths := byDeath(in)
	heap := &w.heap
	heap.reset(in, out)
	for k := range in.lo {
		for in.hi[deaths[0]] <= in.lo[k] {
			heap.free(deaths[0] + 1)
			deaths = deaths[1:]
		}
		if top := heap.place(int32(k) + 1); top > peak || k%stopEvery == 0 {
			if peak = max(peak, top); stop(peak) {
				return 0, false
			}
		}
	}
	return peak, true
}

// byDeath returns the buffers in the order in which they die.
func byDeath(in *instance) []int32 {
	next := make([]int32, in.sections()+2)
	for _, hi := range in.hi {
		next[hi+1]++
	}
	for s := range in.sections() + 1 {
		next[s+1] += next[s]
	}
	order := make([]int32, in.len())
	for k, hi := range in.hi {
		order[next[hi]] = int32(k)
		next[hi]++
	}
	return order
}

// addressOrder holds the live buffers in the order of their addresses, and the gaps between them. Node 0 stands for
// the bottom, node k+1 for buffer k, and a gap goes by the node below it.
type addressOrder struct {
	size, offset []int64 // units, of each buffer
	prev, next   []int32 // of each node, none at the ends
	last         int32   // the topmost node
	gaps         gapTree
}

func (h *addressOrder) reset(in *instance, offset []int64) {
	h.size, h.offset = in.size, offset
	h.prev, h.next = resize(h.prev, in.len()+1), resize(h.next, in.len()+1)
	h.prev[0], h.next[0] = none, none
	h.last = 0
	h.gaps.reset(in.len() + 1)
}

// end returns where a node ends.
func (h *addressOrder) end(node int32) int64 {
	if node == 0 {
		return 0
	}
	return h.offset[node-1] + h.size[node-1]
}

// gap returns the room between a node and the next, 0 above the topmost.
func (h *addressOrder) gap(node int32) int64 {
	if node == h.last {
		return 0
	}
	return h.offset[h.next[node]-1] - h.end(node)
}

// place gives a buffer its offset and returns its end.
func (h *addressOrder) place(node int32) int64 {
	below := h.gaps.fit(h.size[node-1])
	if below == none {
		below = h.last
	} else {
		h.gaps.remove(below)
	}
	h.offset[node-1] = h.end(below)
	above := h.next[below]
	h.prev[node], h.next[node], h.next[below] = below, above, node
	if above == none {
		h.last = node
	} else {
		h.prev[above] = node
	}
	h.keepGap(node)
	return h.end(node)
}

// free takes a buffer out.
func (h *addressOrder) free(node int32) {
	below, above := h.prev[node], h.next[node]
	for _, edge := range [2]int32{below, node} {
		if h.gap(edge) > 0 {
			h.gaps.remove(edge)
		}
	}
	h.next[below] = above
	if above == none {
		h.last = below
		return
	}
	h.prev[above] = below
	h.keepGap(below)
}

// keepGap enters the gap above a node, if there is one.
func (h *addressOrder) keepGap(node int32) {
	if gap := h.gap(node); gap > 0 {
		h.gaps.insert(node, gap, h.end(node))
	}
}
