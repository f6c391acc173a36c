package tags

import "sort"

// facts are what the rules look at.
type facts struct {
	passes      bool   // iterations are known
	born        origin // pass in which it was made; building before the first iteration, unsaid after the last one
	origin      origin // of its stack
	freed       bool
	same        bool // it was freed in the pass in which it was made
	throughout  bool // it was never freed, or after the backward pass of the last iteration
	updates     int  // of the optimizer, that began while it lived
	early       bool // it was made in the first two iterations
	preexisting bool
	older       older
	iteration   int  // in which it was made
	sized       bool // it is as large as a parameter
	repeated    bool // it was never freed, and one of its size is kept that a pass of a later iteration made
	gradient    bool // it is as large as a parameter and kept as other gradients are, or of the last iteration, or freed after several
	first       bool // where no iterations are known: it was made while the model was
	distance    int  // and so many allocations were made until it was freed
}

// older is what an allocation without a stack that is older than the recording is by its size.
type older uint8

const (
	notKnown older = iota
	asParameter
	asState
)

// pass tells whether it was made in a forward or a backward pass.
func (f *facts) pass() bool { return f.born == forward || f.born == backward }

// kept tells whether an allocation outlives more than a gradient or an activation does.
func (f *facts) kept() bool { return f.updates >= 2 || !f.freed && f.early }

// factsOf returns the facts of a block.
func factsOf(b *block, d *device, t *timetable) facts {
	passes := t.passes
	f := facts{passes: len(passes) > 0, origin: b.origin, freed: b.died != never, preexisting: b.preexisting}
	if !f.passes {
		if f.freed {
			f.distance = d.after(b.died) - d.after(b.born)
		}
		return f
	}
	from, to := passAt(passes, b.born), passAt(passes, b.died)
	f.same = f.freed && from == to
	f.throughout = !f.freed || to >= t.last
	f.born, f.early = building, true
	if from >= 0 {
		f.born, f.iteration, f.early = passes[from].kind, passes[from].iteration, passes[from].iteration < 2
	}
	f.updates = t.updates[to+1] - t.updates[from+1]
	return f
}

// timetable is the passes of a device.
type timetable struct {
	passes  []pass
	updates []int // how many of the first passes are updates, by how many those are
	last    int   // number of the last update, or how many passes there are
}

func newTimetable(passes []pass) *timetable {
	t := &timetable{passes: passes, updates: make([]int, 1, len(passes)+1), last: len(passes)}
	n := 0
	for i, p := range passes {
		if p.kind == update {
			n++
			t.last = i
		}
		t.updates = append(t.updates, n)
	}
	return t
}

// passAt returns the number of the pass of a row, -1 before the first.
func passAt(passes []pass, row int64) int {
	return sort.Search(len(passes), func(i int) bool { return passes[i].row > row }) - 1
}

// built returns how many allocations there are, where no iterations are known, up to the last of those that are kept and follow each
// other closely from the beginning on.
func built(blocks []block) int {
	end, kept := 0, 0
	for i := range blocks {
		if i > end+short {
			break
		}
		if blocks[i].died == never {
			end = i + 1
			kept++
		}
	}
	if kept < leastBuilt {
		return 0
	}
	return end
}

// leastBuilt is how many parameters a model has at least.
const leastBuilt = 8

// allFacts returns the facts of all blocks of a device.
func allFacts(d *device, passes []pass) []facts {
	all := make([]facts, len(d.blocks))
	first := built(d.blocks)
	t := newTimetable(passes)
	for i := range d.blocks {
		all[i] = factsOf(&d.blocks[i], d, t)
		all[i].first = len(passes) == 0 && i < first
	}
	compareSizes(d, all)
	compareOlder(d, all)
	return all
}
