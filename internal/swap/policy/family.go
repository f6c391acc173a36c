package policy

import (
	"math/bits"
	"slices"
	"sort"
)

// family is what quick chooses from: schedules that are made for one amount of memory after the other and, between the two around a limit,
// for finer ones.
type family struct {
	*problem
	coarse, fine maker
	least, top   int64 // amounts of memory: what the largest operator takes, and what is in use at worst when nothing is moved
	unit         int64 // the least step between two

	below, at, next int64 // amounts of memory: the last two that coarse has reached, and the next; 0 before the start, at -1 before the first
	before          trail // of coarse, when it had reached below
	from, to, parts int64 // the amounts of memory that fine goes between, and how many parts it has done
}

func newFamily(p *problem) *family {
	f := &family{problem: p, coarse: maker{problem: p}, least: p.Graph.Least(), top: slices.Max(p.Plain), at: -1, from: -1}
	f.unit = powerOfTwo((f.top - f.least) / (16 * f.octave()))
	f.below = f.least
	return f
}

// grow makes the schedules for the amounts of memory up to a limit, which is not below the last one, and for the first amount above it.
func (f *family) grow(limit int64) error {
	if f.next == 0 {
		if err := f.start(); err != nil {
			return err
		}
	}
	if err := f.climb(limit); err != nil {
		return err
	}
	return f.refine(limit)
}

// start finds the first amount of memory, the least that is found to be enough, and makes what does not depend on it.
func (f *family) start() error {
	if err := f.coarse.addPlan(planMemo); err != nil {
		return err
	}
	first := sort.Search(int((f.top-f.least)/f.unit), func(i int) bool { return f.enough(f.least + int64(i)*f.unit) })
	f.next = f.least + int64(first)*f.unit
	return nil
}

// enough reports whether one of the fast policies has a schedule for an amount of memory.
func (f *family) enough(bytes int64) bool {
	f.Limits.Device = bytes
	fits := func(plan planner) bool {
		actions, err := plan(f.problem)
		return err == nil && f.accept(actions) == nil
	}
	if fits(planBelady) || fits(planFloor) {
		return true
	}
	_, err := newChooser(f.problem).first(0, 1)
	return err == nil || fits(planSketch)
}

// climb makes the schedules for growing amounts of memory, up to the first that is the limit or more. The amounts are multiples of powers of
// two, so that round limits are among them. They are closer to each other the less memory there is: where memory is short, a little more makes
// steps a lot faster.
func (f *family) climb(limit int64) error {
	for f.at < limit && f.next < f.top {
		f.below, f.before = max(f.below, f.at), f.coarse.trail
		f.at = f.next
		if err := f.coarse.add(f.at); err != nil {
			return err
		}
		unit := max(f.unit, powerOfTwo((f.at-f.least)/f.octave()))
		f.next = f.at/unit*unit + unit
	}
	return nil
}

// octave returns how many amounts of memory there are for each doubling of the memory above the least: fewer for graphs that take long.
func (f *family) octave() int64 {
	const most, work = 6, 6000
	return min(most, max(1, most*work/int64(len(f.Graph.Ops)+len(f.Graph.Tensors)+1)))
}

// powerOfTwo returns the greatest power of two up to a number, at least 1.
func powerOfTwo(n int64) int64 { return 1 << max(0, bits.Len64(uint64(max(0, n)))-1) }

// finer is into how many parts the stretch between two amounts of memory is divided.
const finer = 16

// refine makes the schedules for the finer amounts of memory up to a limit, if that is not one of the others.
func (f *family) refine(limit int64) error {
	from, to, before := f.below, f.at, f.before
	if limit > f.at {
		from, to, before = max(f.below, f.at), f.top, f.coarse.trail
	}
	if from != f.from || to != f.to {
		f.from, f.to, f.parts, f.fine = from, to, 0, maker{problem: f.problem, trail: before}
		if limit < f.at && from == f.least {
			f.parts = -1 // nothing was made for from, which is below the first
		}
	}
	for limit < to { // the last of them is at to, which is beyond the limit
		bytes := from + (to-from)*(f.parts+1)/finer
		if bytes > limit {
			break
		}
		f.parts++
		if err := f.fine.add(bytes); err != nil {
			return err
		}
	}
	return nil
}
