package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

func TestPowerOfTwo(t *testing.T) {
	for n, want := range map[int64]int64{-5: 1, 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 1023: 512, 1024: 1024} {
		if got := powerOfTwo(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}

// TestOctave has fewer amounts of memory for larger graphs: 6 up to 6000 operators and tensors, and at least 1.
func TestOctave(t *testing.T) {
	for n, want := range map[int]int64{1: 6, 5999: 6, 6000: 5, 11_999: 3, 12_000: 2, 35_999: 1, 100_000: 1} {
		f := &family{problem: newProblem(&swap.Graph{Ops: make([]swap.Op, n)}, swapLimits(0))}
		if got := f.octave(); got != want {
			t.Errorf("%d operators: %d amounts for each doubling, want %d", n, got, want)
		}
	}
}

// fitting lists the fast policies that have a schedule within the limits: belady, floor, the search of remat and joint's first taste.
func fitting(p *problem) (fits []string) {
	for name, plan := range map[string]planner{"belady": planBelady, "floor": planFloor, "remat": planSketch} {
		if actions, err := plan(p); err == nil && p.accept(actions) == nil {
			fits = append(fits, name)
		}
	}
	if _, err := newChooser(p).first(0, 1); err == nil {
		fits = append(fits, "joint")
	}
	return fits
}

// TestEnough asks each of the fast policies: there is enough memory if one has a schedule. It is rare that belady has the only one: such problems
// are listed.
func TestEnough(t *testing.T) {
	only := map[string]int{} // amounts that are enough for one of them alone
	check := func(seed uint64, most int, part float64, bytes int64) {
		g, l := randomProblem(seed, most)
		f := newFamily(newProblem(g, l))
		if l.Device = bytes; bytes == 0 {
			l.Device = f.least + int64(part*float64(f.top-f.least))
		}
		fits := fitting(newProblem(g, l))
		if got := f.enough(l.Device); got != (len(fits) > 0) {
			t.Fatalf("seed %d, %d bytes: %v, expected %v", seed, l.Device, got, fits)
		}
		if len(fits) == 1 {
			only[fits[0]]++
		}
	}
	for seed := range uint64(150) {
		check(seed, 25, rand.New(rand.NewPCG(seed, 24)).Float64(), 0)
	}
	for seed, bytes := range map[uint64]int64{2789: 4000, 3668: 58680, 4947: 7000, 5258: 51987, 5636: 67095} {
		check(seed, 14, 0, bytes)
	}
	if only["belady"] < 5 || only["joint"] < 1 {
		t.Errorf("enough for one alone: %v", only)
	}
}

// TestClimb takes one amount of memory after the other. The first is the least that one of the fast policies has a schedule for, the others are
// multiples of powers of two, the next one each; distances grow with the memory beyond the least.
func TestClimb(t *testing.T) {
	amounts := 0
	for seed := range uint64(25) {
		g, l := randomProblem(seed, 20)
		f := newFamily(newProblem(g, l))
		if f.top <= f.least {
			continue
		}
		if err := f.start(); err != nil {
			t.Fatal(err)
		}
		if k := (f.next - f.least) / f.unit; f.next != f.least+k*f.unit || f.next < f.top && !f.enough(f.next) || k > 0 && f.enough(f.next-f.unit) {
			t.Fatalf("seed %d: %d bytes come first, of at least %d", seed, f.next, f.least)
		}
		at := f.least // the last amount
		rung := 0
		for next := f.next; next < f.top; {
			if err := f.climb(next); err != nil {
				t.Fatal(err)
			}
			if f.at != next || f.below != at || f.before.rung != rung || f.coarse.rung != rung+1 {
				t.Fatalf("seed %d: %d bytes after %d, expected %d after %d", seed, f.at, f.below, next, at)
			}
			at, rung = f.at, rung+1
			unit := max(f.unit, powerOfTwo((at-f.least)/6))
			for next++; next%unit != 0; next++ {
			}
			amounts++
		}
		if err := f.climb(f.top + 1); err != nil || f.coarse.rung != rung {
			t.Fatalf("seed %d: %d amounts, expected %d, %v", seed, f.coarse.rung, rung, err)
		}
	}
	if amounts < 100 {
		t.Errorf("%d amounts", amounts)
	}
}

// TestGrow grows families for ascending limits: to the first amount of memory that is no less than the limit, and between that and the amount
// before, or behind the last one up to the greatest use of all, to each sixteenth up to the limit.
func TestGrow(t *testing.T) {
	finerOnes, beyond := 0, 0
	for seed := range uint64(20) {
		g, l := randomProblem(seed, 15)
		f := newFamily(newProblem(g, l))
		if f.top <= f.least {
			continue
		}
		r := rand.New(rand.NewPCG(seed, 10))
		var limits []int64
		for range 6 {
			limits = append(limits, f.least+r.Int64N(f.top-f.least))
		}
		limits = append(limits, f.top-1)
		slices.Sort(limits)
		for _, limit := range limits {
			if err := f.grow(limit); err != nil {
				t.Fatal(err)
			}
			if f.at < limit && f.next < f.top || f.at > limit && f.below >= limit && f.below > f.least {
				t.Fatalf("seed %d, %d bytes: at %d after %d, and %d is next", seed, limit, f.at, f.below, f.next)
			}
			from, to, begin := f.below, f.at, f.before.rung
			if f.at < limit {
				from, to, begin = max(f.below, f.at), f.top, f.coarse.rung
				beyond++
			}
			first := int64(1)
			if begin == 0 {
				first = 0 // nothing was made for the least either
			}
			made := 0
			for k := first; k < finer && limit < to && from+(to-from)*k/finer <= limit; k++ {
				made++
			}
			if f.fine.rung != begin+made {
				t.Fatalf("seed %d, %d bytes: %d finer amounts from %d to %d, expected %d", seed, limit, f.fine.rung-begin, from, to, made)
			}
			finerOnes += made
			const mark = -1 // of members that are not made anew
			f.fine.members = append(f.fine.members, member{result: result{op: mark}})
			if err := f.grow(limit); err != nil || f.fine.members[len(f.fine.members)-1].op != mark || f.fine.rung != begin+made {
				t.Fatalf("seed %d, %d bytes: finer amounts are made again, %v", seed, limit, err)
			}
			f.fine.members = f.fine.members[:len(f.fine.members)-1]
		}
	}
	if finerOnes < 100 || beyond < 5 {
		t.Errorf("%d finer amounts, %d limits behind the last one", finerOnes, beyond)
	}
}

// TestSharesWork says that quick's schedules for several amounts of memory are made together; those of joint are not.
func TestSharesWork(t *testing.T) {
	for name, want := range map[string]bool{quickName: true, "joint": false, "none": false} {
		if p, err := Lookup(name); err != nil || p.Shares() != want {
			t.Errorf("%s: %v, %v", name, p.Shares(), err)
		}
	}
}

// TestQuickBest takes the best of both series within the limit, but none of the finer ones that is faster than what the amount above has.
func TestQuickBest(t *testing.T) {
	m := func(step time.Duration, peak int64) member { return member{result: result{step: step, peak: peak}} }
	for name, test := range map[string]struct {
		coarse, fine []member
		at, limit    int64
		want         time.Duration // 0: none
	}{
		"none":                     {nil, nil, 20, 10, 0},
		"the coarse one":           {[]member{m(50, 10), m(30, 20)}, nil, 20, 15, 50},
		"a finer one":              {[]member{m(50, 10), m(30, 20)}, []member{m(40, 15)}, 20, 15, 40},
		"a finer one alone":        {[]member{m(30, 20)}, []member{m(40, 15)}, 20, 15, 40},
		"as fast as that above":    {[]member{m(50, 10), m(30, 20)}, []member{m(30, 15), m(29, 14)}, 20, 15, 30},
		"a slower finer one":       {[]member{m(50, 10), m(30, 20)}, []member{m(60, 15)}, 20, 15, 50},
		"too much memory":          {[]member{m(50, 10), m(30, 20)}, []member{m(40, 16)}, 20, 15, 50},
		"none above":               {[]member{m(50, 10)}, []member{m(20, 15)}, 10, 15, 20},
		"the limit is that amount": {[]member{m(50, 10), m(30, 20)}, []member{m(20, 15)}, 20, 20, 30},
		"no schedule above":        {[]member{m(50, 30)}, []member{m(20, 15)}, 20, 15, 20},
	} {
		f := &family{coarse: maker{members: test.coarse}, fine: maker{members: test.fine}, at: test.at}
		got := f.best(test.limit)
		if test.want == 0 && got != nil || test.want > 0 && (got == nil || got.step != test.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestQuickClosest names the schedule that exceeds the limit least, of both series, if that is less than what is missing anyway.
func TestQuickClosest(t *testing.T) {
	f := &family{
		coarse: maker{members: []member{{result: result{peak: 50, op: 1}}, {result: result{peak: 30, op: 2}}}},
		fine:   maker{members: []member{{result: result{peak: 25, op: 3}}, {result: result{peak: 30, op: 4}}}},
	}
	for limit, want := range map[int64]ShortError{20: {Bytes: 5, Op: 3}, 25: {Bytes: 5, Op: 2}, 15: {Bytes: 10, Op: 9}, 16: {Bytes: 9, Op: 3}} {
		if got := f.closest(limit, &ShortError{Bytes: 10, Op: 9}); *got != want {
			t.Errorf("limit %d: %+v, want %+v", limit, *got, want)
		}
	}
}

// TestLighter copies less where steps take no longer: never more than the best choice of joint's tastes does, though what was made for less memory
// may.
func TestLighter(t *testing.T) {
	hidden, lighter := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 18))
		g := stack("cccccccccccccccc"[:8+r.IntN(9)], 1000, 1)
		for i := range g.Tensors {
			g.Tensors[i].Bytes = 1000 + r.Int64N(9000)
		}
		_, top := draft.Over(g.Plain(), 0)
		l := swap.Limits{Device: g.Least() + r.Int64N(top-g.Least()), Host: math.MaxInt64, Link: link{0, 20e9, 20e9}}
		p := newProblem(g, l)
		actions, err := planQuick(p)
		if err != nil || len(actions) == 0 {
			continue
		}
		best := p.family.best(l.Device)
		if best.step > g.Compute() {
			continue
		}
		got, err := p.keeps(slices.Clone(actions))
		if err != nil || got.step > best.step || got.moved > best.moved {
			t.Fatalf("seed %d: %+v, expected no worse than %+v, %v", seed, got, best.result, err)
		}
		c := newChooser(p)
		o, err := c.first(0, len(c.prices))
		if err != nil {
			continue
		}
		actions, err = c.actions(&o)
		if err != nil || p.accept(actions) != nil {
			continue
		}
		if o.better(&got) {
			t.Errorf("seed %d: %d bytes are copied, where %d would do", seed, got.moved, o.moved)
		}
		if hidden++; got.moved < best.moved {
			lighter++
		}
	}
	if hidden < 20 || lighter < 3 {
		t.Errorf("%d steps take no longer, %d copy less than what was made for less memory", hidden, lighter)
	}
}
