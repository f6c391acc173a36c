// Package rigid turns a problem of any kind into rigid items of rectangles, and places items one after another.
//
//   - model.go: the items and their rectangles
//   - cut.go: circular time is cut into a line
//   - disjoint.go: overlapping rectangles of one item are merged
//   - bound.go: a lower bound of the peak
//   - pass.go: placement of the items in a given order, each as low as possible
//   - shelves.go, space.go: the rectangles placed so far, by time and by offset
//   - pile.go: the rest of a pass, in little time, when a deadline has passed
package rigid

import (
	"cmp"
	"slices"

	"gm/internal/dsa"
	"gm/internal/dsa/residue"
	"gm/internal/dsa/sections"
)

// Model is a problem of any kind as rigid items, each of rectangles in time and address. Time is
// a line, cut into sections like those of a [sections.Instance], and no two rectangles of an item overlap. A solution is the base of
// each item. Lengths are in units of the problem's alignment.
type Model struct {
	Items []Item
	Rects []Rect // item by item
	Flat  *sections.Instance
	Bound int64 // units: no layout has a lower peak

	Problem *dsa.Problem
	groups  *dsa.Groups
	group   []int32 // of each item
}

// Item is a group of buffers that are not all empty.
type Item struct {
	residue.Class       // of the base, units
	First, last   int32 // its rectangles are Rects[First:last]
	Fixed         int64 // units: the base, or dsa.Free
	Top           int64 // units: the highest end of a rectangle above the base
}

// Rect is a stretch of addresses during a stretch of time.
type Rect struct {
	Lo, Hi    int32 // the sections [Lo, Hi)
	Item      int32
	Low, Size int64 // units; Low is relative to the base of the item
}

// New returns the model of a valid problem.
func New(p *dsa.Problem) *Model {
	g, err := dsa.NewGroups(p)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	m := &Model{Problem: p, groups: g}
	pieces, of := cut(p)
	in := sections.New(pieces)
	m.collect(in, of)
	m.flatten(sectionTimes(in, pieces))
	m.Bound = m.lowerBound()
	return m
}

// collect builds the rectangles and the items from the pieces of buffers in an instance.
func (m *Model) collect(in *sections.Instance, of []int32) {
	g := m.groups
	counts := make([]int32, len(g.Step)+1)
	buffers := make([]int32, in.Len())
	for k, piece := range in.ID {
		buffers[k] = piece
		if of != nil {
			buffers[k] = of[piece]
		}
		counts[g.Of[buffers[k]]+1]++
	}
	for k := range g.Step {
		counts[k+1] += counts[k]
	}
	rects := make([]Rect, in.Len())
	next := slices.Clone(counts)
	for k, i := range buffers {
		group := g.Of[i]
		rects[next[group]] = Rect{Lo: in.Lo[k], Hi: in.Hi[k], Low: g.At[i], Size: in.Size[k]}
		next[group]++
	}
	for k := range g.Step {
		m.add(int32(k), rects[counts[k]:counts[k+1]])
	}
}

// add appends the item of a group with the given rectangles.
func (m *Model) add(group int32, rects []Rect) {
	if len(rects) == 0 {
		return
	}
	g := m.groups
	it := Item{
		Class: residue.Class{Step: g.Step[group], Remainder: g.Remainder[group]},
		First: int32(len(m.Rects)), Fixed: g.Fixed[group],
	}
	for _, r := range disjoint(rects) {
		r.Item = int32(len(m.Items))
		it.Top = max(it.Top, r.Low+r.Size)
		m.Rects = append(m.Rects, r)
	}
	it.last = int32(len(m.Rects))
	m.Items = append(m.Items, it)
	m.group = append(m.group, group)
}

// sectionTimes returns the time at which each section of an instance begins, and the end of the last.
func sectionTimes(in *sections.Instance, p *dsa.Problem) []float64 {
	times := make([]float64, in.Sections()+1)
	for s := range in.Sections() {
		times[s] = float64(p.Start[in.ID[in.First[s]]])
	}
	for _, i := range in.ID {
		times[in.Sections()] = max(times[in.Sections()], float64(p.End[i]))
	}
	return times
}

// flatten builds Flat, the plain instance of the rectangles: each may be placed alone, without alignment. Its
// ids are the indices of rectangles.
func (m *Model) flatten(times []float64) {
	order := make([]int32, len(m.Rects))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(m.Rects[a].Lo, m.Rects[b].Lo) })
	n := len(order)
	lo, hi, size := make([]int32, n), make([]int32, n), make([]int64, n)
	life := make([]float64, n)
	for k, i := range order {
		r := &m.Rects[i]
		lo[k], hi[k], size[k] = r.Lo, r.Hi, r.Size
		life[k] = times[r.Hi] - times[r.Lo]
	}
	m.Flat = sections.FromColumns(lo, hi, size, order, life)
}

// Sections returns the number of sections.
func (m *Model) Sections() int { return m.Flat.Sections() }

// Of returns the rectangles of an item.
func (m *Model) Of(item int32) []Rect { return m.Rects[m.Items[item].First:m.Items[item].last] }

// Floor returns the lowest base of an item that is alone.
func (it *Item) Floor() int64 {
	if it.Fixed != dsa.Free {
		return it.Fixed
	}
	return it.Remainder
}

// Offsets returns the offsets of the buffers, in bytes, for given bases of the items. Groups without rectangles are placed as
// low as possible.
func (m *Model) Offsets(bases []int64) []int64 {
	g := m.groups
	all := make([]int64, len(g.Step))
	for k := range all {
		if all[k] = g.Remainder[k]; g.Fixed[k] != dsa.Free {
			all[k] = g.Fixed[k]
		}
	}
	for i, base := range bases {
		all[m.group[i]] = base
	}
	offsets := make([]int64, m.Problem.Len())
	for i, k := range g.Of {
		offsets[i] = (all[k] + g.At[i]) * m.Problem.Align
	}
	return offsets
}

// Alike reports whether two items are interchangeable in any layout.
func (m *Model) Alike(x, y *Item) bool {
	return x.Fixed == dsa.Free && y.Fixed == dsa.Free && x.Class == y.Class &&
		slices.EqualFunc(m.Rects[x.First:x.last], m.Rects[y.First:y.last], func(u, v Rect) bool {
			u.Item = v.Item
			return u == v
		})
}
