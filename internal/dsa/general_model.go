package dsa

import (
	"cmp"
	"slices"
)

// model is any problem made ready for the general solver: rigid items, each of rectangles in time and address. Time is
// a line, cut into sections as those of an [instance], and no two rectangles of an item overlap. A solution is the base of
// each item. Lengths are in units of the problem's alignment.
type model struct {
	items []item
	rects []rect // those of one item in a row, the items in order
	flat  *instance
	bound int64 // units: no layout has a lower peak

	p      *Problem
	groups *groups
	group  []int32 // of each item
}

// item is a group of buffers of which some are not empty.
type item struct {
	congruence        // of the base, units
	first, last int32 // its rectangles are rects[first:last]
	fixed       int64 // units: the base, or [Free]
	top         int64 // units: the highest end of a rectangle above the base
}

// rect is a stretch of addresses during a stretch of time.
type rect struct {
	lo, hi    int32 // the sections [lo, hi)
	item      int32
	low, size int64 // units; low is above the base of the item
}

// newModel prepares a valid problem.
func newModel(p *Problem) *model {
	g, err := newGroups(p)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	m := &model{p: p, groups: g}
	pieces, of := p.cut()
	in := newInstance(pieces)
	m.collect(in, of)
	m.flatten(sectionTimes(in, pieces))
	m.bound = m.lowerBound()
	return m
}

// collect makes the rectangles and the items from the pieces of buffers in an instance.
func (m *model) collect(in *instance, of []int32) {
	g := m.groups
	counts := make([]int32, len(g.step)+1)
	buffers := make([]int32, in.len())
	for k, piece := range in.id {
		buffers[k] = piece
		if of != nil {
			buffers[k] = of[piece]
		}
		counts[g.of[buffers[k]]+1]++
	}
	for k := range g.step {
		counts[k+1] += counts[k]
	}
	rects := make([]rect, in.len())
	next := slices.Clone(counts)
	for k, i := range buffers {
		group := g.of[i]
		rects[next[group]] = rect{lo: in.lo[k], hi: in.hi[k], low: g.at[i], size: in.size[k]}
		next[group]++
	}
	for k := range g.step {
		m.add(int32(k), rects[counts[k]:counts[k+1]])
	}
}

// add makes a group with the given rectangles an item.
func (m *model) add(group int32, rects []rect) {
	if len(rects) == 0 {
		return
	}
	g := m.groups
	it := item{
		congruence: congruence{g.step[group], g.rest[group]},
		first:      int32(len(m.rects)), fixed: g.fixed[group],
	}
	for _, r := range disjoint(rects) {
		r.item = int32(len(m.items))
		it.top = max(it.top, r.low+r.size)
		m.rects = append(m.rects, r)
	}
	it.last = int32(len(m.rects))
	m.items = append(m.items, it)
	m.group = append(m.group, group)
}

// sectionTimes returns when each section of an instance begins, and when the last ends.
func sectionTimes(in *instance, p *Problem) []float64 {
	times := make([]float64, in.sections()+1)
	for s := range in.sections() {
		times[s] = float64(p.Start[in.id[in.first[s]]])
	}
	for _, i := range in.id {
		times[in.sections()] = max(times[in.sections()], float64(p.End[i]))
	}
	return times
}

// flatten makes the plain instance of the rectangles, in which each may be placed by itself and nothing is aligned. Its
// ids are the indices of rectangles.
func (m *model) flatten(times []float64) {
	order := make([]int32, len(m.rects))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(m.rects[a].lo, m.rects[b].lo) })
	n := len(order)
	flat := &instance{lo: make([]int32, n), hi: make([]int32, n), size: make([]int64, n), id: order}
	life := make([]float64, n)
	for k, i := range order {
		r := &m.rects[i]
		flat.lo[k], flat.hi[k], flat.size[k] = r.lo, r.hi, r.size
		life[k] = times[r.hi] - times[r.lo]
	}
	flat.indexSections()
	flat.features = newFeatures(flat, life)
	m.flat = flat
}

// sections returns the number of sections.
func (m *model) sections() int { return m.flat.sections() }

// of returns the rectangles of an item.
func (m *model) of(item int32) []rect { return m.rects[m.items[item].first:m.items[item].last] }

// floor returns the lowest base that an item can have when it is alone.
func (it *item) floor() int64 {
	if it.fixed != Free {
		return it.fixed
	}
	return it.rest
}

// offsets returns where the buffers are, in bytes, when the items have the given bases. Groups without rectangles are as
// low as they can be.
func (m *model) offsets(bases []int64) []int64 {
	g := m.groups
	all := make([]int64, len(g.step))
	for k := range all {
		if all[k] = g.rest[k]; g.fixed[k] != Free {
			all[k] = g.fixed[k]
		}
	}
	for i, base := range bases {
		all[m.group[i]] = base
	}
	offsets := make([]int64, m.p.Len())
	for i, k := range g.of {
		offsets[i] = (all[k] + g.at[i]) * m.p.Align
	}
	return offsets
}
