package tags

import (
	"cmp"
	"slices"
)

// pass is a part of a job that begins at a row and ends where the next one begins. Rows before the first pass build the model.
type pass struct {
	row       int64
	kind      origin // forward, backward or update; unsaid after the last iteration
	iteration int
}

// findPasses returns the passes of a device's iterations; none if there are no iterations.
func findPasses(d *device, marks []mark) []pass {
	spans := markedSpans(d, marks)
	if spans == nil || !d.hasStacks() {
		// Without stacks, the passes of several batches before one step can only be separated as iterations of their own.
		if regular := regularSpans(d); len(regular) >= 2*len(spans) {
			spans = regular
		}
	}
	if len(spans) == 0 {
		return nil
	}
	d.settleFirst(spans)
	var passes []pass
	for i, s := range spans {
		passes = appendPasses(passes, d.passesOf(s), i)
	}
	return appendPasses(passes, d.unfinished(spans[len(spans)-1]), len(spans))
}

// appendPasses adds the passes of an iteration. None of them begins before those already added.
func appendPasses(all, more []pass, iteration int) []pass {
	for _, p := range more {
		p.iteration = iteration
		if len(all) > 0 {
			p.row = max(p.row, all[len(all)-1].row)
		}
		all = append(all, p)
	}
	return all
}

// passesOf divides an iteration into passes: by the stacks of its allocations if they are known, otherwise by their lifetimes.
func (d *device) passesOf(s span) []pass {
	blocks := d.blocks[s.lo:s.hi]
	if len(blocks) == 0 {
		return nil
	}
	if d.hasStacks() {
		if passes := passesByStack(blocks, s.updated); passes != nil {
			return passes
		}
	}
	turn, updated := passesByLife(blocks, s.updated)
	return []pass{{row: blocks[0].born, kind: forward}, {row: turn, kind: backward}, {row: updated, kind: update}}
}

// passesByStack divides an iteration by the code that ran. Allocations without a stack are those of autograd's threads, which run no
// Python. It returns nil unless there are both a forward and a backward pass.
func passesByStack(blocks []block, updated int64) []pass {
	passes := []pass{{row: blocks[0].born, kind: forward}}
	backwards := 0
	for i := range blocks {
		b := &blocks[i]
		kind := b.origin
		if b.bare || kind == recompute {
			kind = backward
		}
		if last := passes[len(passes)-1].kind; kind == last || kind == unsaid || kind == building || last == update {
			continue
		}
		if kind == backward {
			backwards++
		}
		passes = append(passes, pass{row: b.born, kind: kind})
	}
	if backwards == 0 {
		return nil
	}
	if updated > 0 {
		passes = slices.DeleteFunc(passes, func(p pass) bool { return p.row >= updated || p.kind == update })
		passes = append(passes, pass{row: updated, kind: update})
	}
	return passes
}

// passesByLife returns the rows at which the backward pass and the update begin; the latter may be known. The backward pass begins at
// the peak of the bytes that are allocated in the iteration and freed before its last allocation. These do not include gradients,
// since the optimizer has yet to use them. It ends when the last block that was live then is freed or, if hardly anything is allocated
// after that, with the last allocation.
func passesByLife(blocks []block, known int64) (turn, updated int64) {
	last := blocks[len(blocks)-1].born
	if known > 0 {
		last = known
	}
	turn = fullest(blocks, last)
	if known > 0 {
		return turn, known
	}
	updated = turn
	for i := range blocks {
		if b := &blocks[i]; b.born <= turn && b.died > turn && b.died < last {
			updated = max(updated, b.died)
		}
	}
	gradients, after := 0, 0
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.born > updated:
			after++
		case b.born > turn && b.died > last:
			gradients++
		}
	}
	if 2*after < gradients {
		updated = last + 1
	}
	return turn, updated
}

// fullest returns the row of the peak of the live bytes of those blocks that are freed before a given row.
func fullest(blocks []block, before int64) (row int64) {
	type change struct{ row, bytes int64 }
	var changes []change
	for i := range blocks {
		if b := &blocks[i]; b.born < before && b.died < before {
			changes = append(changes, change{b.born, b.size}, change{b.died, -b.size})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.row, b.row) })
	row = before
	live, most := int64(0), int64(0)
	for _, c := range changes {
		if live += c.bytes; live > most {
			most, row = live, c.row
		}
	}
	return row
}

// unfinished returns the passes after the last iteration: by stacks, or with as many allocations in each as the last iteration has.
func (d *device) unfinished(last span) []pass {
	rest := d.blocks[last.hi:]
	if len(rest) == 0 {
		return nil
	}
	if d.hasStacks() {
		if own := passesByStack(rest, 0); own != nil {
			return own
		}
	}
	own := []pass{{row: rest[0].born, kind: forward}}
	for _, p := range d.passesOf(last) {
		if n := d.after(p.row-1) - last.lo; n < len(rest) && p.kind != forward {
			own = append(own, pass{row: rest[n].born, kind: p.kind})
		}
	}
	if n := last.hi - last.lo; n < len(rest) {
		own = append(own, pass{row: rest[n].born, kind: unsaid})
	}
	return own
}
