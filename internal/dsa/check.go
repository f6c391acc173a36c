package dsa

import (
	"cmp"
	"fmt"
	"slices"

	"gm/internal/bitset"
)

// Check returns an error when a layout does not solve the valid problem: when an offset is missing, negative or not
// aligned, differs from the fixed offset, or violates a tie; when two buffers that live at the same time
// overlap and are not tied, directly or through others; or when the peak is wrong or below the bound. It shares no code with
// the solvers.
func Check(p *Problem, l Layout) error {
	if len(l.Offsets) != p.Len() {
		return fmt.Errorf("%d offsets for %d buffers", len(l.Offsets), p.Len())
	}
	peak := int64(0)
	for i, offset := range l.Offsets {
		switch {
		case offset < 0 || offset%p.Align != 0 || p.Aligns != nil && p.Aligns[i] > 1 && offset%p.Aligns[i] != 0:
			return fmt.Errorf("buffer %d is at %d, which is not aligned", i, offset)
		case p.Fixed != nil && p.Fixed[i] != Free && offset != p.Fixed[i]:
			return fmt.Errorf("buffer %d is at %d, but fixed at %d", i, offset, p.Fixed[i])
		case p.end(int32(i), l.Offsets) < offset:
			return fmt.Errorf("buffer %d is at %d, too far up", i, offset)
		}
		if !p.empty(int32(i)) {
			peak = max(peak, p.end(int32(i), l.Offsets))
		}
	}
	for _, t := range p.Ties {
		if distance := l.Offsets[t.B] - l.Offsets[t.A]; distance != t.Delta {
			return fmt.Errorf("buffer %d is %d above buffer %d, but tied at %d", t.B, distance, t.A, t.Delta)
		}
	}
	all := make([]int32, p.Len())
	for i := range all {
		all[i] = int32(i)
	}
	if a, b, found := p.overlap(all, l.Offsets); found {
		return fmt.Errorf("buffer %d at %d overlaps buffer %d at %d", a, l.Offsets[a], b, l.Offsets[b])
	}
	if l.Peak != peak || l.Bound > l.Peak {
		return fmt.Errorf("a peak of %d and a bound of %d, but the highest end is %d", l.Peak, l.Bound, peak)
	}
	return nil
}

// empty reports whether a buffer has no size or no life, and so no conflict.
func (p *Problem) empty(i int32) bool { return p.Size[i] == 0 || p.Start[i] == p.End[i] }

// end returns the end of a buffer, its size rounded up.
func (p *Problem) end(i int32, offsets []int64) int64 {
	size := p.Size[i]
	if over := size % p.Align; over > 0 {
		size += p.Align - over
	}
	return offsets[i] + size
}

// overlap looks for two of the given buffers that live at the same time, share a byte and are not tied. It replays births
// and deaths, and keeps the live buffers in the order of their offsets.
func (p *Problem) overlap(buffers []int32, offsets []int64) (a, b int32, found bool) {
	spans := p.spans(buffers)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(offsets[a.buffer], offsets[b.buffer]) })
	births, deaths := make([]int32, len(spans)), make([]int32, len(spans))
	for i := range spans {
		births[i], deaths[i] = int32(i), int32(i)
	}
	slices.SortFunc(births, func(a, b int32) int { return cmp.Compare(spans[a].start, spans[b].start) })
	slices.SortFunc(deaths, func(a, b int32) int { return cmp.Compare(spans[a].end, spans[b].end) })
	live := bitset.New(len(spans))
	tied := p.tied()
	for _, i := range births {
		for spans[deaths[0]].end <= spans[i].start {
			live.Remove(int(deaths[0]))
			deaths = deaths[1:]
		}
		x := spans[i].buffer
		for j := live.After(int(i)); j >= 0 && offsets[spans[j].buffer] < p.end(x, offsets); j = live.After(j) {
			if !tied.same(spans[j].buffer, x) {
				return spans[j].buffer, x, true
			}
		}
		// Of the buffers below, only the nearest and those tied to it can reach this far: any other would overlap the nearest.
		for j, first := live.Before(int(i)), int32(-1); j >= 0; j = live.Before(j) {
			y := spans[j].buffer
			if first < 0 {
				first = y
			}
			if !tied.same(first, y) {
				break
			}
			if p.end(y, offsets) > offsets[x] && !tied.same(x, y) {
				return y, x, true
			}
		}
		live.Add(int(i))
	}
	return 0, 0, false
}

// span is a stretch of time in which a buffer lives.
type span struct {
	start, end int64
	buffer     int32
}

// spans returns the lives of the given buffers that are not empty. In circular time, a life that wraps around makes two spans.
func (p *Problem) spans(buffers []int32) []span {
	spans := make([]span, 0, len(buffers))
	for _, i := range buffers {
		switch start, life := p.Start[i], p.End[i]-p.Start[i]; {
		case p.empty(i):
		case p.Period == 0:
			spans = append(spans, span{start, p.End[i], i})
		default:
			if start %= p.Period; start < 0 {
				start += p.Period
			}
			spans = append(spans, span{start, min(start+life, p.Period), i})
			if rest := start + life - p.Period; rest > 0 {
				spans = append(spans, span{0, rest, i})
			}
		}
	}
	return spans
}

// tiedSets are disjoint sets of buffers as a forest: the parent of each, itself at the root. It is nil without ties.
type tiedSets []int32

func (p *Problem) tied() tiedSets { return p.tiedBy(func(Tie) bool { return true }) }

// tiedBy returns the sets of buffers that are connected by the ties for which counts is true.
func (p *Problem) tiedBy(counts func(Tie) bool) tiedSets {
	if len(p.Ties) == 0 {
		return nil
	}
	t := make(tiedSets, p.Len())
	for i := range t {
		t[i] = int32(i)
	}
	for _, tie := range p.Ties {
		if counts(tie) {
			t[t.root(tie.A)] = t.root(tie.B)
		}
	}
	return t
}

func (t tiedSets) root(i int32) int32 {
	for t[i] != i {
		t[i] = t[t[i]]
		i = t[i]
	}
	return i
}

// same reports whether two buffers are the same or tied.
func (t tiedSets) same(a, b int32) bool {
	return a == b || t != nil && t.root(a) == t.root(b)
}
