package recording

import (
	"cmp"
	"slices"

	"gm/formats/trace"
)

// Ranges are the addresses of an allocator's segments on one device.
type Ranges struct {
	all  []Span // by address, disjoint
	lost bool   // there were too many to track
}

// Span is the addresses [Low, High) of one segment.
type Span struct {
	Low, High uint64
	Mapped    bool // part of an expandable segment, which continues in a mapped neighbour of the same stream and pool
	Stream    int64
	Pool      int32 // code of its name
}

// maxSpans is how many spans are tracked.
const maxSpans = 16 << 10

// Add processes a row of the framework's allocator on the device.
func (r *Ranges) Add(e *trace.Event) {
	if !e.Op.Segment() || r.lost || e.Addr == 0 || e.Size == 0 {
		return
	}
	s := Span{e.Addr, e.Addr + uint64(e.Size), e.Op == trace.OpSegmentMap, e.Stream, e.Pool}
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

// Spans returns the segments by address, those of mapped neighbours as one; nil if they are not known. They are valid until the next Add.
func (r *Ranges) Spans() []Span { return r.all }

// continues reports whether two spans that touch are parts of one segment.
func (s Span) continues(t Span) bool {
	return s.Mapped && t.Mapped && s.Stream == t.Stream && s.Pool == t.Pool
}

// Hold reports whether size bytes at addr lie in one segment.
func (r *Ranges) Hold(addr uint64, size int64) bool {
	i := r.after(addr) - 1
	return i >= 0 && addr+uint64(size) <= r.all[i].High
}

// after returns the index of the first range that begins after an address.
func (r *Ranges) after(addr uint64) int {
	i, _ := slices.BinarySearchFunc(r.all, addr, func(s Span, addr uint64) int {
		if s.Low <= addr {
			return -1
		}
		return 1
	})
	return i
}

// cut removes addresses from all ranges.
func (r *Ranges) cut(s Span) {
	from := r.after(s.Low)
	if from > 0 && r.all[from-1].High > s.Low {
		from--
	}
	to, _ := slices.BinarySearchFunc(r.all, s.High, func(t Span, high uint64) int { return cmp.Compare(t.Low, high) })
	if from >= to {
		return
	}
	var left []Span
	if first := r.all[from]; first.Low < s.Low {
		left = append(left, Span{first.Low, s.Low, first.Mapped, first.Stream, first.Pool})
	}
	if last := r.all[to-1]; last.High > s.High {
		left = append(left, Span{s.High, last.High, last.Mapped, last.Stream, last.Pool})
	}
	r.all = slices.Replace(r.all, from, to, left...)
}

// insert adds a range that overlaps no other.
func (r *Ranges) insert(s Span) {
	i := r.after(s.Low)
	from, to := i, i
	if i > 0 && r.all[i-1].High == s.Low && r.all[i-1].continues(s) {
		from--
		s.Low = r.all[from].Low
	}
	if i < len(r.all) && r.all[i].Low == s.High && r.all[i].continues(s) {
		to++
		s.High = r.all[i].High
	}
	r.all = slices.Replace(r.all, from, to, s)
}
