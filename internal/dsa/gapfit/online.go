// Package gapfit lays out an instance buffer by buffer, each in a gap between those that live at the same time.
//
//   - online.go: in the order of births and deaths, as an allocator sees them
//   - gaps.go: the gaps between live buffers, by size
//   - ordered.go: in any order, at quadratic cost
package gapfit

import (
	"slices"

	"gm/internal/dsa/sections"
)

// Online processes births and deaths in order, and places each buffer in the smallest gap that holds it, the lowest of several:
// what an allocator without size classes would do. When all sizes are equal it meets the bound.
// It reuses its memory between runs.
type Online struct{ live addressOrder }

// Run writes an offset for each buffer to out and returns the peak, both in units. It ends early, with ok false, when stop returns true
// for the peak reached so far.
func (o *Online) Run(in *sections.Instance, stop sections.Stop, out []int64) (peak int64, ok bool) {
	deaths := byDeath(in)
	o.live.reset(in, out)
	for k := range in.Lo {
		for in.Hi[deaths[0]] <= in.Lo[k] {
			o.live.free(deaths[0] + 1)
			deaths = deaths[1:]
		}
		if top := o.live.place(int32(k) + 1); top > peak || k%sections.StopEvery == 0 {
			if peak = max(peak, top); stop(peak) {
				return 0, false
			}
		}
	}
	return peak, true
}

// byDeath returns the buffers in the order in which they die.
func byDeath(in *sections.Instance) []int32 {
	next := make([]int32, in.Sections()+2)
	for _, hi := range in.Hi {
		next[hi+1]++
	}
	for s := range in.Sections() + 1 {
		next[s+1] += next[s]
	}
	order := make([]int32, in.Len())
	for k, hi := range in.Hi {
		order[next[hi]] = int32(k)
		next[hi]++
	}
	return order
}

// addressOrder holds the live buffers in the order of their addresses, and the gaps between them. Node 0 stands for
// the bottom, node k+1 for buffer k. A gap is named after the node below it.
type addressOrder struct {
	size, offset []int64 // units, of each buffer
	prev, next   []int32 // of each node, none at the ends
	last         int32   // the topmost node
	gaps         gapTree
}

func (h *addressOrder) reset(in *sections.Instance, offset []int64) {
	h.size, h.offset = in.Size, offset
	n := in.Len() + 1
	h.prev, h.next = slices.Grow(h.prev[:0], n)[:n], slices.Grow(h.next[:0], n)[:n]
	h.prev[0], h.next[0] = none, none
	h.last = 0
	h.gaps.reset(n)
}

// end returns the end of a node.
func (h *addressOrder) end(node int32) int64 {
	if node == 0 {
		return 0
	}
	return h.offset[node-1] + h.size[node-1]
}

// gap returns the size of the gap above a node, 0 above the topmost.
func (h *addressOrder) gap(node int32) int64 {
	if node == h.last {
		return 0
	}
	return h.offset[h.next[node]-1] - h.end(node)
}

// place chooses the offset of a buffer and returns its end.
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

// free removes a buffer.
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

// keepGap adds the gap above a node to the tree, if there is one.
func (h *addressOrder) keepGap(node int32) {
	if gap := h.gap(node); gap > 0 {
		h.gaps.insert(node, gap, h.end(node))
	}
}
