package tags

import (
	"sort"

	"gm/internal/trace/iterations"
)

// span is an iteration: blocks [lo, hi) of a device, and the row at which the optimizer's update begins, 0 if that is not known.
type span struct {
	lo, hi  int
	updated int64
}

// regularSpans returns the iterations that package iterations finds.
func regularSpans(d *device) []span {
	n := len(d.blocks)
	sizes, streams, live := make([]int64, n), make([]int64, n), make([]int64, n)
	for i := range d.blocks {
		sizes[i], streams[i], live[i] = d.blocks[i].size, d.blocks[i].stream, d.blocks[i].live
	}
	var spans []span
	for _, s := range iterations.Find(sizes, streams, live) {
		spans = append(spans, span{lo: s.Lo, hi: s.Hi})
	}
	d.settle(spans)
	return spans
}

// settle mends where iterations begin. What was made just before and lives on, such as the next batch, is part of them. The first
// one, in which the optimizer makes its state, ends where the second would begin if that is as long as all that follow it.
func (d *device) settle(spans []span) {
	for k := 1; k < len(spans); k++ {
		s := &spans[k]
		first := d.blocks[s.lo].born
		for least := s.lo - batch; s.lo > least && s.lo > spans[k-1].lo+1; s.lo-- {
			if died := d.blocks[s.lo-1].died; died < first || died == never && k < 2 {
				break
			}
		}
		spans[k-1].hi = s.lo
	}
	if len(spans) < 4 {
		return
	}
	length := spans[2].hi - spans[2].lo
	for _, s := range spans[3 : len(spans)-1] { // the last one may be cut off
		if s.hi-s.lo != length {
			return
		}
	}
	if lo := spans[2].lo - length; lo > spans[0].lo {
		spans[0].hi, spans[1].lo = lo, lo
	}
}

// batch is how many allocations a batch of inputs has at most.
const batch = 16

// settleFirst lets the first iteration begin behind all that is older than the recording, behind the last parameter, and right there.
func (d *device) settleFirst(spans []span) {
	s := &spans[0]
	for s.lo < s.hi-1 && d.blocks[s.lo].preexisting {
		s.lo++
	}
	last := d.blocks[spans[len(spans)-1].lo].born
	kept, end := 0, s.lo
	for i, most := s.lo, s.lo+(s.hi-s.lo)/4; i < min(most, end+batch); i++ {
		if d.blocks[i].died >= last {
			end = i + 1
			kept++
		}
	}
	if kept >= leastBuilt { // and not just what libraries keep
		s.lo = end
	}
	for least := max(0, s.lo-(s.hi-s.lo)/20); s.lo > least && d.blocks[s.lo-1].died < last && !d.blocks[s.lo-1].preexisting; s.lo-- {
	}
}

// markedSpans returns the iterations that the marks of an optimizer's steps end. The first one makes as many allocations before its
// update as the second one, since nothing marks its beginning.
func markedSpans(d *device, marks []mark) []span {
	var spans []span
	lo, begun := 0, int64(0)
	for _, m := range marks {
		if m.begin {
			begun = m.row
			continue
		}
		hi := d.after(m.row)
		if hi == lo && len(spans) > 0 { // the same step, marked by another
			continue
		}
		if begun == 0 {
			return nil
		}
		spans = append(spans, span{lo, hi, begun})
		lo, begun = hi, 0
	}
	if len(spans) < 2 {
		return nil
	}
	passes := d.after(spans[1].updated) - spans[1].lo
	spans[0].lo = max(0, d.after(spans[0].updated)-passes)
	return spans
}

// hasStacks tells whether the stacks of most allocations are known.
func (d *device) hasStacks() bool { return 2*d.stacked > len(d.blocks) }

// after returns the number of the first block that is made after a row.
func (d *device) after(row int64) int {
	return sort.Search(len(d.blocks), func(i int) bool { return d.blocks[i].born > row })
}
