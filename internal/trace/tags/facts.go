package tags

import "sort"

// facts are the inputs of the rules, about one allocation.
type facts struct {
	passes      bool   // the iterations are known
	born        origin // pass in which it was allocated; building before the first iteration, unsaid after the last one
	origin      origin // according to its stack
	freed       bool
	same        bool // it was freed in the pass in which it was allocated
	throughout  bool // it was never freed, or after the backward pass of the last iteration
	updates     int  // number of the optimizer's updates that began while it was live
	early       bool // it was allocated in the first two iterations
	preexisting bool
	older       older
	iteration   int  // in which it was allocated
	sized       bool // it is as large as a parameter
	repeated    bool // it was never freed, and a later iteration allocated another one of its size that is kept
	gradient    bool // it is as large as a parameter, and is kept like other gradients, or of the last iteration, or freed after several
	first       bool // without known iterations: it was allocated while the model was built
	distance    int  // without known iterations: number of allocations until it was freed
}

// older is what the size says about an allocation without a stack that is older than the recording.
type older uint8

const (
	notKnown older = iota
	asParameter
	asState
)

// pass reports whether it was allocated in a forward or a backward pass.
func (f *facts) pass() bool { return f.born == forward || f.born == backward }

// kept reports whether an allocation lives longer than a gradient or an activation.
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

// timetable holds the passes of a device.
type timetable struct {
	passes  []pass
	updates []int // number of updates among the first n passes, by n
	last    int   // index of the last update, or the number of passes
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

// passAt returns the index of the pass of a row, -1 before the first.
func passAt(passes []pass, row int64) int {
	return sort.Search(len(passes), func(i int) bool { return passes[i].row > row }) - 1
}

// built returns how many allocations belong to building the model, without known iterations: those up to the last one of the kept
// allocations that follow each other closely from the beginning.
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

// leastBuilt is the fewest parameters of a model.
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
