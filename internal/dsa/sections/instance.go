// Package sections prepares a plain problem for heuristics: it cuts time into sections, sorts the buffers, and ranks them by keys.
//
//   - instance.go: the instance, its components, and the part that is hardest to lay out
//   - features.go: the properties that buffers are ranked by
//   - ranking.go: ranks of buffers by a key, or by a random mix of properties
package sections

import (
	"cmp"
	"slices"

	"gm/internal/dsa"
)

// Instance is a plain problem prepared for heuristics. Sizes and offsets are in units of the alignment. Time is cut into
// sections: a new one begins only where a birth follows a death, so all buffers of a section live at the same
// moment of it, and every conflict shows in some section. Buffers are sorted by their first section; those that
// conflict with no other are left out.
type Instance struct {
	Lo, Hi []int32 // a buffer lives in the sections [Lo, Hi)
	Size   []int64 // units
	ID     []int32 // index in the problem
	First  []int32 // First[s] is the first buffer with Lo >= s, for s in [0, Sections()]
	Load   []int64 // units, of each section
	Bound  int64   // units: the greatest load

	Features Features
}

func (in *Instance) Len() int      { return len(in.Lo) }
func (in *Instance) Sections() int { return len(in.Load) }

// New returns the instance of a valid plain problem.
func New(p *dsa.Problem) *Instance {
	ids := ByStart(p)
	ends := make([]int64, len(ids))
	for k, i := range ids {
		ends[k] = p.End[i]
	}
	slices.Sort(ends)
	in := &Instance{Lo: make([]int32, len(ids)), Hi: make([]int32, len(ids)), Size: make([]int64, len(ids)), ID: ids}
	life := make([]float64, len(ids))
	after := in.cutSections(p, ends)
	for k, i := range ids {
		in.Size[k] = p.Units(int(i))
		life[k] = float64(p.End[i]) - float64(p.Start[i])
		rank, _ := slices.BinarySearch(ends, p.End[i])
		in.Hi[k] = after[rank]
	}
	in.finish(life)
	return in
}

// FromColumns returns an instance of the given columns, ordered by lo. life is the length of each life in the problem's time. The slices
// belong to the instance afterwards.
func FromColumns(lo, hi []int32, size []int64, id []int32, life []float64) *Instance {
	in := &Instance{Lo: lo, Hi: hi, Size: size, ID: id}
	in.finish(life)
	return in
}

// finish derives the remaining fields from the sections of the buffers and the lengths of their lives.
func (in *Instance) finish(life []float64) {
	in.indexSections()
	in.Features = newFeatures(in, life)
}

// ByStart returns the buffers that can conflict, ordered by start and then by index.
func ByStart(p *dsa.Problem) []int32 {
	ids := make([]int32, 0, p.Len())
	sorted := true
	for i := range p.Size {
		if p.Size[i] == 0 || p.Start[i] == p.End[i] {
			continue
		}
		if len(ids) > 0 && p.Start[ids[len(ids)-1]] > p.Start[i] {
			sorted = false
		}
		ids = append(ids, int32(i))
	}
	if !sorted {
		slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(p.Start[a], p.Start[b]) })
	}
	return ids
}

// cutSections fills in lo and returns, for each of the sorted ends, the section that follows the life that ends there.
func (in *Instance) cutSections(p *dsa.Problem, ends []int64) []int32 {
	after := make([]int32, len(ends))
	section, dead := int32(0), 0
	for k, i := range in.ID {
		died := false
		for ; dead < len(ends) && ends[dead] <= p.Start[i]; dead++ {
			after[dead] = section + 1
			died = true
		}
		if died {
			section++
		}
		in.Lo[k] = section
	}
	for ; dead < len(ends); dead++ {
		after[dead] = section + 1
	}
	return after
}

// indexSections fills in first, load and bound from the sections of the buffers.
func (in *Instance) indexSections() {
	n := int32(0)
	for _, hi := range in.Hi {
		n = max(n, hi)
	}
	in.First = make([]int32, n+1)
	in.Load = make([]int64, n+1)
	for k, lo := range in.Lo {
		in.First[lo+1]++
		in.Load[lo] += in.Size[k]
		in.Load[in.Hi[k]] -= in.Size[k]
	}
	in.Load = in.Load[:n]
	sum := int64(0)
	for s := range in.Load {
		in.First[s+1] += in.First[s]
		sum += in.Load[s]
		in.Load[s] = sum
		in.Bound = max(in.Bound, sum)
	}
}

// Components splits the instance between sections that no buffer spans. Each part is an instance of
// its own, and layouts of the parts form a layout of the whole. The part with the greatest bound comes first.
func (in *Instance) Components() []*Instance {
	var parts []*Instance
	begin, reach := int32(0), int32(0)
	for k, lo := range in.Lo {
		if lo >= reach {
			if k > 0 {
				parts = append(parts, in.part(in.First[begin], begin, reach))
			}
			begin = lo
		}
		reach = max(reach, in.Hi[k])
	}
	if reach > begin {
		parts = append(parts, in.part(in.First[begin], begin, reach))
	}
	slices.SortStableFunc(parts, func(a, b *Instance) int { return cmp.Compare(b.Bound, a.Bound) })
	return parts
}

// part returns the sections [begin, end) as an instance: the buffers from the given one on, with their lives cut off at the edges.
func (in *Instance) part(from, begin, end int32) *Instance {
	var picked []int32
	for k := from; k < in.First[end]; k++ {
		if in.Hi[k] > begin {
			picked = append(picked, k)
		}
	}
	n := len(picked)
	part := &Instance{
		Lo: make([]int32, n), Hi: make([]int32, n), Size: make([]int64, n), ID: make([]int32, n),
		Features: in.Features.pick(picked),
	}
	for i, k := range picked {
		part.Lo[i], part.Hi[i] = max(in.Lo[k], begin)-begin, min(in.Hi[k], end)-begin
		part.Size[i], part.ID[i] = in.Size[k], in.ID[k]
	}
	part.indexSections()
	return part
}

// Hardest returns the part around the greatest load, or nil when the instance is small. On either side it ends where the
// load is lowest within an eighth of all births: at the border of an iteration, if one is that near.
func (in *Instance) Hardest() *Instance {
	const few = 4096
	if in.Len() < few {
		return nil
	}
	peak := int32(slices.Index(in.Load, in.Bound))
	reach := int32(in.Len() / 8)
	begin, end := peak, peak
	for begin > 0 && in.First[peak]-in.First[begin-1] <= reach {
		begin--
	}
	for int(end) < in.Sections()-1 && in.First[end+1]-in.First[peak] <= reach {
		end++
	}
	before, after := in.Load[begin:peak+1], in.Load[peak:end+1]
	low := in.almost(slices.Min(before))
	for begin = peak; in.Load[begin] > low; begin-- {
	}
	low = in.almost(slices.Min(after))
	for end = peak; in.Load[end] > low; end++ {
	}
	return in.part(0, begin, end+1)
}

// almost returns a load slightly above the given one.
func (in *Instance) almost(load int64) int64 { return load + (in.Bound-load)/32 }

// Stop reports whether a layout that has reached a peak, in units, is not worth finishing.
type Stop func(peak int64) bool

// StopEvery is the number of buffers that a method may place between two calls of Stop.
const StopEvery = 1024
