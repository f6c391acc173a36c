package tags

import (
	"cmp"
	"slices"
)

// pass is a part of a job that begins at a row and ends where the next one begins. What is before the first pass builds the model.
type pass struct {
	row       int64
	kind      origin // forward, backward or update, and unsaid for what comes after the last iteration
	iteration int
}

// findPasses returns the passes of a device's iterations, none if no iterations are found.
func findPasses(d *device, marks []mark) []pass {
	spans := markedSpans(d, marks)
	if spans == nil || !d.hasStacks() {
		// Without stacks, the passes of several batches before one step are told apart only as iterations of their own.
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

// appendPasses adds the passes of an iteration, none of which begins before those that are there.
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

// passesOf divides an iteration: by the stacks of its allocations where these are known, or else by their lifetimes.
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

// passesByStack follows what the code does. What has no stack is made by the threads of autograd, which run no Python. It returns nil if
// there is not each of a forward and a backward pass.
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

// passesByLife returns the row at which the backward pass begins, and that at which the update does, which may be known. The backward pass
// begins when most bytes live of what is made in the iteration and freed before its last allocation: gradients are not, since the
// optimizer has yet to use them. It ends when the last of what lived then is freed, or, if hardly anything is made after that, with
// the last allocation.
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

// fullest returns the row at which most bytes live of the blocks that are freed before a row.
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

// unfinished returns the passes of what comes after the last iteration: by stacks, or with as many allocations as that has in each.
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
