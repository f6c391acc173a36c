package dsa

import (
	"cmp"
	"slices"
)

// instance is a problem made ready for solvers. Sizes and offsets are in units of the alignment. Time is cut into
// sections: a new one begins only where a birth follows a death, so that the buffers of one section all live at one
// moment of it, and the sections hold every conflict there is. Buffers are sorted by their first section; those that
// conflict with none are left out.
type instance struct {
	lo, hi []int32 // a buffer lives in the sections [lo, hi)
	size   []int64 // units
	id     []int32 // index in the problem
	first  []int32 // first[s] is the first buffer with lo >= s, for s in [0, sections]
	load   []int64 // units, of each section
	bound  int64   // units: the greatest load

	features features
}

func (in *instance) len() int      { return len(in.lo) }
func (in *instance) sections() int { return len(in.load) }

// newInstance prepares a valid problem.
func newInstance(p *Problem) *instance {
	ids := byStart(p)
	ends := make([]int64, len(ids))
	for k, i := range ids {
		ends[k] = p.End[i]
	}
	slices.Sort(ends)
	in := &instance{
		lo: make([]int32, len(ids)), hi: make([]int32, len(ids)), id: ids,
		size: make([]int64, len(ids)),
	}
	life := make([]float64, len(ids))
	after := in.cutSections(p, ends)
	for k, i := range ids {
		in.size[k] = granules(p.Size[i], p.Align)
		life[k] = float64(p.End[i]) - float64(p.Start[i])
		rank, _ := slices.BinarySearch(ends, p.End[i])
		in.hi[k] = after[rank]
	}
	in.indexSections()
	in.features = newFeatures(in, life)
	return in
}

// byStart returns the buffers that can conflict, ordered by start and then by index.
func byStart(p *Problem) []int32 {
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
func (in *instance) cutSections(p *Problem, ends []int64) []int32 {
	after := make([]int32, len(ends))
	section, dead := int32(0), 0
	for k, i := range in.id {
		died := false
		for ; dead < len(ends) && ends[dead] <= p.Start[i]; dead++ {
			after[dead] = section + 1
			died = true
		}
		if died {
			section++
		}
		in.lo[k] = section
	}
	for ; dead < len(ends); dead++ {
		after[dead] = section + 1
	}
	return after
}

// indexSections fills in first, load and bound from the sections of the buffers.
func (in *instance) indexSections() {
	n := int32(0)
	for _, hi := range in.hi {
		n = max(n, hi)
	}
	in.first = make([]int32, n+1)
	in.load = make([]int64, n+1)
	for k, lo := range in.lo {
		in.first[lo+1]++
		in.load[lo] += in.size[k]
		in.load[in.hi[k]] -= in.size[k]
	}
	in.load = in.load[:n]
	sum := int64(0)
	for s := range in.load {
		in.first[s+1] += in.first[s]
		sum += in.load[s]
		in.load[s] = sum
		in.bound = max(in.bound, sum)
	}
}

// components splits the instance wherever nothing lives on from one section to the next. Each part is an instance of
// its own, and any layouts of the parts together are a layout of the whole. The part with the greatest bound is first.
func (in *instance) components() []*instance {
	var parts []*instance
	begin, reach := int32(0), int32(0)
	for k, lo := range in.lo {
		if lo >= reach {
			if k > 0 {
				parts = append(parts, in.part(in.first[begin], begin, reach))
			}
			begin = lo
		}
		reach = max(reach, in.hi[k])
	}
	if reach > begin {
		parts = append(parts, in.part(in.first[begin], begin, reach))
	}
	slices.SortStableFunc(parts, func(a, b *instance) int { return cmp.Compare(b.bound, a.bound) })
	return parts
}

// part returns what the buffers from the given one on do in the sections [begin, end): lives are cut off at the edges.
func (in *instance) part(from, begin, end int32) *instance {
	var picked []int32
	for k := from; k < in.first[end]; k++ {
		if in.hi[k] > begin {
			picked = append(picked, k)
		}
	}
	n := len(picked)
	part := &instance{
		lo: make([]int32, n), hi: make([]int32, n), size: make([]int64, n), id: make([]int32, n),
		features: in.features.pick(picked),
	}
	for i, k := range picked {
		part.lo[i], part.hi[i] = max(in.lo[k], begin)-begin, min(in.hi[k], end)-begin
		part.size[i], part.id[i] = in.size[k], in.id[k]
	}
	part.indexSections()
	return part
}

// hardest returns the part around the greatest load, or nil when the whole is small. On either side it ends where the
// load is low, within an eighth of all births: at the border of an iteration, when it is not further away than that.
func (in *instance) hardest() *instance {
	const few = 4096
	if in.len() < few {
		return nil
	}
	peak := int32(slices.Index(in.load, in.bound))
	reach := int32(in.len() / 8)
	begin, end := peak, peak
	for begin > 0 && in.first[peak]-in.first[begin-1] <= reach {
		begin--
	}
	for int(end) < in.sections()-1 && in.first[end+1]-in.first[peak] <= reach {
		end++
	}
	before, after := in.load[begin:peak+1], in.load[peak:end+1]
	low := in.almost(slices.Min(before))
	for begin = peak; in.load[begin] > low; begin-- {
	}
	low = in.almost(slices.Min(after))
	for end = peak; in.load[end] > low; end++ {
	}
	return in.part(0, begin, end+1)
}

// almost returns a load that is nearly as low as the given one.
func (in *instance) almost(load int64) int64 { return load + (in.bound-load)/32 }
