package policy

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// TestTightest has the bytes in use at each operator, with a limit of 5, and where bounds are taken: at peaks, and at one end of level stretches
// beside lower ones, the highest first.
func TestTightest(t *testing.T) {
	for _, test := range []struct {
		plain []int64
		want  []int32
	}{
		{[]int64{1, 5, 4}, nil},
		{[]int64{1, 6, 4}, []int32{1}},
		{[]int64{6, 4, 7}, []int32{2, 0}},
		{[]int64{6, 7, 8, 7, 8, 9}, []int32{5, 2}},
		{[]int64{8, 8, 8, 8}, []int32{0, 3}},
		{[]int64{1, 8, 8, 8, 9, 8, 1, 8}, []int32{4, 1, 7}},
		{[]int64{7}, []int32{0}},
	} {
		p := &problem{Problem: &draft.Problem{Graph: &swap.Graph{Ops: make([]swap.Op, len(test.plain))}, Plain: test.plain, Limits: swap.Limits{Device: 5}}}
		if got := p.tightest(); !slices.Equal(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.plain, got, test.want)
		}
	}
	many := make([]int64, 4*boundOps)
	for op := range many {
		many[op] = int64(op%2) * int64(100+op)
	}
	p := &problem{Problem: &draft.Problem{Graph: &swap.Graph{Ops: make([]swap.Op, len(many))}, Plain: many, Limits: swap.Limits{Device: 5}}}
	if got := p.tightest(); len(got) != boundOps || got[0] != 4*boundOps-1 || got[boundOps-1] != 2*boundOps+1 {
		t.Errorf("%d operators of many: %v", len(got), got)
	}
}

// TestMay asks of the tightest few operators, and of no others.
func TestMay(t *testing.T) {
	plain := make([]int64, 4*fewOps)
	for op := range plain {
		plain[op] = int64(op%2) * int64(100+op)
	}
	p := &problem{Problem: &draft.Problem{Graph: &swap.Graph{Ops: make([]swap.Op, len(plain))}, Plain: plain, Limits: swap.Limits{Device: 5}}}
	asked := 0
	if !p.may(func(int32) bool { asked++; return true }) || asked != fewOps {
		t.Errorf("asked of %d operators", asked)
	}
	if p.may(func(op int32) bool { return int(op) != 4*fewOps-3 }) {
		t.Error("one does not allow it")
	}
}

// TestCheapest takes the cheapest bytes first.
func TestCheapest(t *testing.T) {
	all := []absent{{bytes: 10, again: 3}, {bytes: 5, again: 1}, {bytes: 5, again: math.Inf(1)}, {bytes: 10, again: 2}}
	for bytes, want := range map[int64]float64{-1: 0, 0: 0, 1: 1, 5: 5, 6: 5 + 2, 15: 5 + 20, 16: 25 + 3, 25: 55, 26: math.Inf(1), 30: math.Inf(1), 31: math.Inf(1)} {
		if got := cheapest(slices.Clone(all), bytes); got != want {
			t.Errorf("%d bytes take %g, expected %g", bytes, got, want)
		}
	}
	if got := cheapest(slices.Clone(all[:2]), 16); !math.IsInf(got, 1) {
		t.Errorf("more bytes than there are take %g", got)
	}
	if got := cheapest(slices.Clone(all[:2]), 15); got != 5+30 {
		t.Errorf("all bytes take %g", got)
	}
}

// TestAbsentAt compares with a look at all uses: what may be away at an operator is written before it and used behind it, and not used by it.
func TestAbsentAt(t *testing.T) {
	for seed := range uint64(40) {
		g, l := randomProblem(seed, 40)
		p := newProblem(g, l)
		end := p.Begin[p.Ops()]
		for op := range p.Ops() {
			var want []absent
			largest := int64(0)
			for _, x := range g.Tensors {
				behind := slices.IndexFunc(x.Uses, func(use int32) bool { return use > op })
				if x.Made >= op || behind < 0 || slices.Contains(x.Uses, op) {
					continue
				}
				again := math.Inf(1)
				if x.Recompute != 0 {
					again = float64(x.Recompute) / float64(x.Bytes)
				}
				largest = max(largest, x.Bytes)
				want = append(want, absent{x.Bytes, float64(p.Begin[x.Made+1]), float64(end - p.Begin[x.Uses[behind]]), again})
			}
			if got, most := p.absentAt(op); !slices.Equal(got, want) || most != largest {
				t.Fatalf("seed %d, operator %d: %v of at most %d bytes, expected %v of %d", seed, op, got, most, want, largest)
			}
		}
	}
}

// copiedBy returns when a lane has copied some bytes, if each tensor can begin at a time and those come first that can first. Without so many
// bytes that is never.
func copiedBy(all []absent, bytes int64, rate float64, from func(absent) float64) float64 {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(x, y absent) int { return cmp.Compare(from(x), from(y)) })
	end := 0.0
	for _, x := range order {
		if bytes <= 0 {
			return end
		}
		end = max(end, from(x)) + rate*float64(min(bytes, x.bytes))
		bytes -= x.bytes
	}
	if bytes > 0 {
		return math.Inf(1)
	}
	return end
}

// again returns how long it takes to compute some bytes again, the cheapest first.
func again(all []absent, bytes int64) float64 {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(x, y absent) int { return cmp.Compare(x.again, y.again) })
	took := 0.0
	for _, x := range order {
		if bytes > 0 {
			took += x.again * float64(min(bytes, x.bytes))
		}
		bytes -= x.bytes
	}
	if bytes > 0 {
		return math.Inf(1)
	}
	return took
}

// leastWay returns the least time of a step over all ways to divide what is away at an operator in copied bytes, from one part of it to the next,
// and others. Copies are those of the least bytes of that, and the others what is left at most.
func leastWay(p *problem, op int32) float64 {
	all, largest := p.absentAt(op)
	away := p.Plain[op] - p.Limits.Device
	before, behind := float64(p.Begin[op]), float64(p.Begin[p.Ops()]-p.Begin[op+1])
	least := math.Inf(1)
	for i := range int64(boundParts) {
		copied, most := int64(float64(away)*float64(i)/boundParts), int64(float64(away)*float64(i+1)/boundParts)
		if copied > p.Limits.Host {
			continue
		}
		out := copiedBy(all, copied, rate(p.Limits.Link.OutTime, largest), func(x absent) float64 { return x.made })
		in := copiedBy(all, copied, rate(p.Limits.Link.InTime, largest), func(x absent) float64 { return x.need })
		took := max(before, out) + float64(p.Graph.Ops[op].Duration) + max(behind+again(all, away-min(most, p.Limits.Host)), in)
		least = min(least, took-float64(len(all)+2)) // each time may be cut to whole ns
	}
	return max(0, least)
}

// TestBoundAt compares bounds at operators with sums over the tensors that may be away.
func TestBoundAt(t *testing.T) {
	compared, impossible := 0, 0
	for seed := range uint64(120) {
		g, l := randomProblem(seed, 25)
		r := rand.New(rand.NewPCG(seed, 8))
		if r.IntN(2) == 0 {
			l.Host = r.Int64N(8000)
		}
		p := newProblem(g, l)
		for op := range p.Ops() {
			if p.Plain[op] <= l.Device || r.IntN(3) > 0 {
				continue
			}
			want := leastWay(p, op)
			got, ok := p.boundAt(op).least()
			if ok == math.IsInf(want, 1) || ok && math.Abs(float64(got)-want) > 1+1e-9*want {
				t.Fatalf("seed %d, operator %d: %v %v, expected %g", seed, op, got, ok, want)
			}
			if compared++; !ok {
				impossible++
			}
		}
	}
	if impossible < 20 || compared-impossible < 100 {
		t.Errorf("%d bounds, %d of them of what is impossible", compared, impossible)
	}
}

// TestLaneOfZero has copies that take no time: a lane's bytes are there when the last of its tensors can begin.
func TestLaneOfZero(t *testing.T) {
	if got := rate(func(int64) time.Duration { return 0 }, 10); got != 0 {
		t.Errorf("copies that take no time take %g ns a byte", got)
	}
	if got := rate(func(int64) time.Duration { return 21 }, 10); got != 2 {
		t.Errorf("21 ns, the last of which may be cut, for 10 bytes: %g ns a byte", got)
	}
	if got := rate(func(int64) time.Duration { return 21 }, 0); got != 0 {
		t.Errorf("no bytes: %g ns a byte", got)
	}
	all := []absent{{bytes: 10, made: 4}, {bytes: 10, made: 9}}
	var c curve
	c.lane(all, 0, func(x *absent) float64 { return x.made })
	for bytes, want := range map[int64]float64{-1: 0, 0: 0, 1: 4, 10: 4, 11: 9, 20: 9, 21: math.Inf(1)} {
		if got := c.at(bytes); got != want {
			t.Errorf("%d bytes are there at %g, expected %g", bytes, got, want)
		}
	}
}

// TestMayCopyAndRecompute compares with bounds at the tightest operators, of schedules that recompute nothing and of such that copy nothing.
func TestMayCopyAndRecompute(t *testing.T) {
	for seed := range uint64(60) {
		g, l := randomProblem(seed, 25)
		p := newProblem(g, l)
		ops := p.tightest()
		if len(ops) == 0 {
			continue // any time will do
		}
		copying, again := 0.0, 0.0
		for _, op := range ops[:min(fewOps, len(ops))] {
			all, _ := p.absentAt(op)
			again = max(again, cheapest(all, p.Plain[op]-l.Device))
			b := p.boundAt(op)
			b.again = curve{}
			if least, ok := b.least(); ok {
				copying = max(copying, float64(least))
			} else {
				copying = math.Inf(1)
			}
		}
		again += float64(p.Begin[p.Ops()])
		end := p.Begin[p.Ops()]
		for _, most := range []time.Duration{0, end, 2 * end, math.MaxInt64, time.Duration(min(copying, 1e15)), time.Duration(min(again, 1e15))} {
			if got, want := p.mayCopy(most), copying <= float64(most); got != want {
				t.Fatalf("seed %d: copies alone may take %v: %v, expected %v", seed, most, got, want)
			}
			if got, want := p.mayRecompute(most), again <= float64(most); got != want {
				t.Fatalf("seed %d: recomputation alone may take %v: %v, expected %v", seed, most, got, want)
			}
		}
	}
}
