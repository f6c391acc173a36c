package recording

import (
	"cmp"
	"slices"

	"gm/formats/trace"
)

// Ranges are the addresses of an allocator's segments on one device.
type Ranges struct {
	all  []span // by address, disjoint
	lost bool   // there were too many to track
}

// span is the addresses [low, high).
type span struct {
	low, high uint64
	mapped    bool // part of an expandable segment, which continues in a mapped neighbour
}

// maxSpans is how many spans are tracked.
const maxSpans = 16 << 10

// Add processes a row of the framework's allocator on the device.
func (r *Ranges) Add(e *trace.Event) {
	if !e.Op.Segment() || r.lost || e.Addr == 0 || e.Size == 0 {
		return
	}
	s := span{e.Addr, e.Addr + uint64(e.Size), e.Op == trace.OpSegmentMap}
	r.cut(s)
	if e.Op == trace.OpSegmentAlloc || e.Op == trace.OpSegmentMap {
		r.insert(s)
	}
	if r.lost = len(r.all) > maxSpans; r.lost {
		r.all = nil
	}
}

// Known reports whether there are segments and all of them are tracked.
func (r *Ranges) Known() bool { return !r.lost && len(r.all) > 0 }

// Hold reports whether size bytes at addr lie in one segment.
func (r *Ranges) Hold(addr uint64, size int64) bool {
	i := r.after(addr) - 1
	return i >= 0 && addr+uint64(size) <= r.all[i].high
}

// after returns the index of the first range that begins after an address.
func (r *Ranges) after(addr uint64) int {
	i, _ := slices.BinarySearchFunc(r.all, addr, func(s span, addr uint64) int {
		if s.low <= addr {
			return -1
		}
		return 1
	})
	return i
}

// cut removes addresses from all ranges.
func (r *Ranges) cut(s span) {
	from := r.after(s.low)
	if from > 0 && r.all[from-1].high > s.low {
		from--
	}
	to, _ := slices.BinarySearchFunc(r.all, s.high, func(t span, high uint64) int { return cmp.Compare(t.low, high) })
	if from >= to {
		return
	}
	var left []span
	if first := r.all[from]; first.low < s.low {
		left = append(left, span{first.low, s.low, first.mapped})
	}
	if last := r.all[to-1]; last.high > s.high {
		left = append(left, span{s.high, last.high, last.mapped})
	}
	r.all = slices.Replace(r.all, from, to, left...)
}

// insert adds a range that overlaps no other.
func (r *Ranges) insert(s span) {
	i := r.after(s.low)
	from, to := i, i
	if i > 0 && s.mapped && r.all[i-1].mapped && r.all[i-1].high == s.low {
		from--
		s.low = r.all[from].low
	}
	if i < len(r.all) && s.mapped && r.all[i].mapped && r.all[i].low == s.high {
		to++
		s.high = r.all[i].high
	}
	r.all = slices.Replace(r.all, from, to, s)
}
