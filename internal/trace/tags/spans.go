package tags

import (
	"slices"
	"sort"

	"gm/internal/trace/iterations"
)

// span is an iteration: blocks [lo, hi) of a device, and the row at which the optimizer's update begins, 0 if unknown.
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

// settle corrects where iterations begin. Blocks that were allocated just before an iteration and stay live, such as the next batch, are
// part of it. The first iteration, in which the optimizer creates its state, ends where the second begins if that is as long as those
// after it.
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
	for _, s := range spans[3 : len(spans)-1] { // the last one may be incomplete
		if s.hi-s.lo != length {
			return
		}
	}
	if lo := spans[2].lo - length; lo > spans[0].lo {
		spans[0].hi, spans[1].lo = lo, lo
	}
}

// batch is the most allocations of a batch of inputs.
const batch = 16

// settleFirst moves the start of the first iteration past the blocks that are older than the recording and past the last parameter, then
// back to just after a block that is kept.
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
	if kept >= leastBuilt { // rather than only the memory that libraries keep
		s.lo = end
	}
	for least := max(0, s.lo-(s.hi-s.lo)/20); s.lo > least && d.blocks[s.lo-1].died < last && !d.blocks[s.lo-1].preexisting; s.lo-- {
	}
}

// markedSpans returns the iterations that end with the marks of an optimizer's steps. Nothing marks the beginning of the first one: it
// gets as many allocations before its update as the second one has.
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

// hasStacks reports whether the stacks of most allocations are known.
func (d *device) hasStacks() bool { return 2*d.stacked > len(d.blocks) }

// named reports whether the stack of any allocation is of a step of training: of a module's forward pass, autograd or an optimizer.
func (d *device) named() bool {
	return slices.ContainsFunc(d.blocks, func(b block) bool { return b.origin > building })
}

// after returns the index of the first block that is allocated after a row.
func (d *device) after(row int64) int {
	return sort.Search(len(d.blocks), func(i int) bool { return d.blocks[i].born > row })
}
