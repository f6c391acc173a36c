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
	life   []int64 // length of the life in the problem's time
	id     []int32 // index in the problem
	first  []int32 // first[s] is the first buffer with lo >= s, for s in [0, sections]
	load   []int64 // units, of each section
	bound  int64   // units: the greatest load
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
		size: make([]int64, len(ids)), life: make([]int64, len(ids)),
	}
	after := in.cutSections(p, ends)
	for k, i := range ids {
		in.size[k] = granules(p.Size[i], p.Align)
		in.life[k] = p.End[i] - p.Start[i]
		// All that die between two births die in the section of the earlier one, so the rank of any equal end will do.
		rank, _ := slices.BinarySearch(ends, p.End[i])
		in.hi[k] = after[rank]
	}
	in.indexSections()
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
	for k := range in.lo {
		if lo := in.lo[k]; lo == reach && lo > begin {
			parts = append(parts, in.part(begin, lo))
			begin = lo
		}
		reach = max(reach, in.hi[k])
	}
	if reach > begin {
		parts = append(parts, in.part(begin, reach))
	}
	slices.SortStableFunc(parts, func(a, b *instance) int { return cmp.Compare(b.bound, a.bound) })
	return parts
}

// part returns the buffers of the sections [begin, end), which no life crosses the edges of.
func (in *instance) part(begin, end int32) *instance {
	from, to := in.first[begin], in.first[end]
	part := &instance{
		lo: slices.Clone(in.lo[from:to]), hi: slices.Clone(in.hi[from:to]),
		size: in.size[from:to], life: in.life[from:to], id: in.id[from:to],
		first: slices.Clone(in.first[begin : end+1]), load: in.load[begin:end],
	}
	for k := range part.lo {
		part.lo[k] -= begin
		part.hi[k] -= begin
	}
	for s := range part.first {
		part.first[s] -= from
	}
	part.bound = slices.Max(part.load)
	return part
}
