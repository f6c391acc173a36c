package replay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/torch/allocconf"
)

// random is a program of n steps or a few more at random, some of whose tensors other streams use, and some of which are never freed. If
// older is set it begins with memory of before the recording, of which a part is free.
func random(rng *rand.Rand, n int, older bool) *Program {
	p := &Program{Name: "random", Align: 512}
	add := func(kind Kind, tensor int32) { p.step(kind, tensor, int64(len(p.Kinds)), int64(1000+10*len(p.Kinds))) }
	var live, lent []int32
	if older {
		s := blocks.Segment{Addr: 1 << 40, Size: 160 << 20}
		for i := range rng.Int64N(6) {
			t := p.tensor(4<<20, 0, 0)
			s.Live = append(s.Live, blocks.Held{Addr: 1<<40 + uint64(i)*(10<<20), Size: 4 << 20})
			p.InitialTensors = append(p.InitialTensors, t)
			add(Alloc, t)
			live = append(live, t)
		}
		p.Initial = []blocks.Segment{s}
	}
	take := func(from *[]int32) int32 {
		i := rng.IntN(len(*from))
		t := (*from)[i]
		*from = slices.Delete(*from, i, i+1)
		return t
	}
	for len(p.Kinds) < n {
		switch x := rng.IntN(20); {
		case x == 0:
			add(Empty, 0)
		case x < 10 || len(live) == 0:
			size, stream, pool := rng.Int64N(3)*(1+rng.Int64N(12<<20)), int64(rng.IntN(2)), int32(rng.IntN(12)/11)
			if older && size > 0 { // most fits into what is there
				size, stream, pool = size+(2<<20), 0, 0
			}
			t := p.tensor(size, stream, pool)
			live = append(live, t)
			add(Alloc, t)
		case x < 14:
			add(Free, take(&live))
		case x < 17:
			t := take(&live)
			lent = append(lent, t)
			add(Request, t)
		case len(lent) > 0:
			add(Complete, take(&lent))
		}
	}
	return p
}

func newTorch(t *testing.T, capacity int64) (*blocks.Torch, *sim.Device) {
	t.Helper()
	dev := sim.New(capacity, sim.CostTable{})
	a, err := blocks.NewTorch(dev, allocconf.Default())
	if err != nil {
		t.Fatal(err)
	}
	return a, dev
}

// TestPeakAgainstDefinition finds the peak as the first step of all after which most is reserved, or, where that was so before the first step, of
// those the one at which most is requested.
func TestPeakAgainstDefinition(t *testing.T) {
	later, before := 0, 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := random(rng, 1+rng.IntN(60), seed%2 == 0)
		var reserved, requested []int64
		now := int64(0)
		a, dev := newTorch(t, 0)
		_, err := RunWatched(t.Context(), p, a, dev, func(i int, at cuda.Ptr) {
			size := p.Sizes[p.Tensors[i]]
			switch p.Kinds[i] {
			case Alloc:
				now += size
			case Free, Request:
				now -= size
			}
			if none := p.Kinds[i] == Empty || size == 0; none != (at == 0) {
				t.Fatalf("seed %d: step %d of kind %d at %#x", seed, i, p.Kinds[i], at)
			}
			reserved, requested = append(reserved, a.Stats().Reserved), append(requested, now)
		})
		if err != nil {
			t.Fatal(err)
		}
		most := slices.Max(reserved)
		want := Peak{Step: slices.Index(reserved, most), Reserved: most, Grew: most > 0}
		if len(p.Initial) > 0 && most == reserved[0] {
			before++
			want.Grew = false
		} else if most > 0 {
			later++
		}
		if !want.Grew {
			for i := range reserved {
				if reserved[i] == most && requested[i] > requested[want.Step] {
					want.Step = i
				}
			}
		}
		a, dev = newTorch(t, 0)
		if got, err := FindPeak(t.Context(), p, a, dev); got != want || err != nil {
			t.Fatalf("seed %d: %+v, %v, want %+v", seed, got, err, want)
		}
	}
	if later < 20 || before < 20 {
		t.Errorf("the peak was %d times before the first step and %d times later: the test is too easy", before, later)
	}
}

// TestUntilBegins: before the first step there are the tensors of before the recording.
func TestUntilBegins(t *testing.T) {
	for seed := range uint64(10) {
		p := random(rand.New(rand.NewPCG(seed, 2)), 0, true)
		for step := -1; step < p.Steps(); step++ {
			a, dev := newTorch(t, 0)
			live, err := Until(t.Context(), p, a, dev, step)
			if err != nil || len(live) != len(p.InitialTensors) {
				t.Errorf("until step %d: %v, %v", step, live, err)
			}
			for at, ptr := range live {
				if want := cuda.Ptr(1<<40 + int64(at)*(10<<20)); ptr != want {
					t.Errorf("tensor %d is at %#x, want %#x", at, ptr, want)
				}
			}
		}
	}
}

// TestCurveAgainstDefinition: a curve has the most bytes in each of up to 2048 stretches of as many steps.
func TestCurveAgainstDefinition(t *testing.T) {
	for _, c := range []struct{ steps, stride int }{{1, 1}, {300, 1}, {2048, 1}, {2049, 2}, {4096, 2}, {4097, 3}, {6144, 3}} {
		p := random(rand.New(rand.NewPCG(uint64(c.steps), 3)), c.steps, false)
		a, dev := newTorch(t, 0)
		var want Curve
		res, err := RunWatched(t.Context(), p, a, dev, func(i int, _ cuda.Ptr) {
			s := a.Stats()
			if i%c.stride == 0 {
				want.TimeNS = append(want.TimeNS, p.TimesNS[i])
				want.Allocated, want.Reserved = append(want.Allocated, 0), append(want.Reserved, 0)
			}
			k := i / c.stride
			want.Allocated[k], want.Reserved[k] = max(want.Allocated[k], s.Allocated), max(want.Reserved[k], s.Reserved)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Curve; fmt.Sprint(got) != fmt.Sprint(want) || len(got.TimeNS) > 2048 {
			t.Errorf("%d steps: a curve of %d points, want %d", c.steps, len(got.TimeNS), len(want.TimeNS))
		}
		if got, want := p.DurationNS(), int64(10*(c.steps-1)); got != want {
			t.Errorf("%d steps take %d ns, want %d", c.steps, got, want)
		}
	}
	if got := (&Program{}).DurationNS(); got != 0 {
		t.Errorf("no step takes %d ns", got)
	}
}

// TestBorrowersAgainstDefinition: the tensors of a borrower complete in their order, and there are no more borrowers than the most tensors that
// complete in the opposite order. Those that never complete are in no one's way.
func TestBorrowersAgainstDefinition(t *testing.T) {
	several := 0
	for seed := range uint64(100) {
		p := random(rand.New(rand.NewPCG(seed, 4)), 120, false)
		ends := make([]int, len(p.Sizes))
		for i, kind := range p.Kinds {
			if kind == Complete {
				ends[p.Tensors[i]] = i
			}
		}
		of, n := p.Borrowers()
		last := make([]int, n)
		lent := map[int32]bool{}
		most := 0
		var chains []int // by tensor that was lent, the most before it that complete in the opposite order, with it
		var order []int
		for i, kind := range p.Kinds {
			if kind != Request {
				continue
			}
			at := p.Tensors[i]
			lent[at] = true
			end := ends[at]
			if end == 0 {
				end = p.Steps()
			}
			if b := of[at]; b < 0 || int(b) >= n || last[b] > end {
				t.Fatalf("seed %d: tensor %d has borrower %d of %d, one of whose tensors completes at %d, not %d", seed, at, b, n, last[max(b, 0)], end)
			}
			last[of[at]] = end
			chain := 1
			for k, before := range order {
				if before > end {
					chain = max(chain, chains[k]+1)
				}
			}
			chains, order = append(chains, chain), append(order, end)
			most = max(most, chain)
		}
		for at, b := range of {
			if !lent[int32(at)] && b != -1 {
				t.Fatalf("seed %d: tensor %d has borrower %d", seed, at, b)
			}
		}
		if n != most {
			t.Fatalf("seed %d: %d borrowers, want %d", seed, n, most)
		}
		if n > 1 {
			several++
		}
	}
	if several < 50 {
		t.Errorf("%d programs had several borrowers: the test is too easy", several)
	}
}

// counting is hands that count steps, and are cancelled after some.
type counting struct {
	begun, ended int
	until        int
	cancel       func()
}

func (c *counting) Begin(int) {
	if c.begun++; c.begun == c.until {
		c.cancel()
	}
}
func (c *counting) Alloc(int32) error    { return nil }
func (c *counting) Free(int32) error     { return nil }
func (c *counting) Request(int32) error  { return nil }
func (c *counting) Complete(int32) error { return nil }
func (c *counting) Empty() error         { return nil }
func (c *counting) End(int) error        { c.ended++; return nil }

// TestPerformIsCancelled within 4,096 steps.
func TestPerformIsCancelled(t *testing.T) {
	p := random(rand.New(rand.NewPCG(1, 5)), 20_000, false)
	for _, until := range []int{0, 1, 4096, 5000} {
		ctx, cancel := context.WithCancel(t.Context())
		c := &counting{until: until, cancel: cancel}
		if until == 0 {
			cancel()
		}
		if _, err := p.Perform(ctx, p.Steps(), c); !errors.Is(err, context.Canceled) || c.begun >= until+4096 || c.ended != c.begun {
			t.Errorf("cancelled at step %d: ended after %d of %d steps; %v", until, c.ended, c.begun, err)
		}
	}
}

// TestThrough: a program up to a request that failed has the tensors of the steps before it, and that request.
func TestThrough(t *testing.T) {
	p := random(rand.New(rand.NewPCG(1, 6)), 50, false)
	for step := range p.Steps() {
		q := p.Through(Refusal{Step: step, Row: 7, TimeNS: 9, Size: 123, Stream: 4, Pool: 2})
		allocs := 0
		for _, kind := range p.Kinds[:step] {
			if kind == Alloc {
				allocs++
			}
		}
		n := len(q.Sizes) - 1
		if q.Steps() != step+1 || n != allocs || !slices.Equal(q.Kinds[:step], p.Kinds[:step]) || !slices.Equal(q.Sizes[:n], p.Sizes[:n]) ||
			q.Kinds[step] != Alloc || q.Tensors[step] != int32(n) || q.Sizes[n] != 123 || q.Streams[n] != 4 || q.Pools[n] != 2 {
			t.Fatalf("step %d: %d steps with %d tensors, want %d and %d", step, q.Steps(), len(q.Sizes), step+1, allocs+1)
		}
	}
}

// TestPlanKeepsApart: a plan has an arena for each pool, in which no tensor lies where another is at the same time, until its free or the end of its
// use by other streams.
func TestPlanKeepsApart(t *testing.T) {
	for seed := range uint64(20) {
		p := random(rand.New(rand.NewPCG(seed, 7)), 120, false)
		placements, arenas, err := p.Plan(t.Context(), solvers.Auto())
		if err != nil {
			t.Fatal(err)
		}
		pools := map[int32]blocks.Pool{}
		live := map[int32]bool{}
		q := map[int32]*dsa.Problem{} // by arena, what it should hold
		for i, at := range p.Tensors {
			x := placements[at]
			switch p.Kinds[i] {
			case Alloc:
				if pool, ok := pools[x.Arena]; ok && pool != p.Pools[at] {
					t.Fatalf("seed %d: arena %d has tensors of two pools", seed, x.Arena)
				}
				pools[x.Arena] = p.Pools[at]
				for other := range live {
					if y := placements[other]; y.Arena == x.Arena && y.Offset < x.Offset+x.Size && x.Offset < y.Offset+y.Size {
						t.Fatalf("seed %d: tensors %d and %d overlap", seed, at, other)
					}
				}
				live[at] = true
				if x.Size != p.Sizes[at] || x.Offset+x.Size > arenas[x.Arena] {
					t.Fatalf("seed %d: tensor %d of %d bytes has %+v", seed, at, p.Sizes[at], x)
				}
				if q[x.Arena] == nil {
					q[x.Arena] = &dsa.Problem{Align: p.Align}
				}
				end := int64(p.Steps())
				for k := i; k < p.Steps(); k++ {
					if p.Tensors[k] == at && (p.Kinds[k] == Free || p.Kinds[k] == Complete) {
						end = int64(k)
					}
				}
				q[x.Arena].Start, q[x.Arena].End = append(q[x.Arena].Start, int64(i)), append(q[x.Arena].End, end)
				q[x.Arena].Size = append(q[x.Arena].Size, x.Size)
			case Free, Complete:
				delete(live, at)
			}
		}
		for arena, problem := range q { // no memory is kept for longer
			layout, err := solvers.Auto().Solve(t.Context(), problem, dsa.Options{})
			if err != nil || layout.Peak != arenas[arena] {
				t.Errorf("seed %d: arena %d has %d bytes, want %d; %v", seed, arena, arenas[arena], layout.Peak, err)
			}
		}
		if len(arenas) != len(q) {
			t.Errorf("seed %d: %d arenas, want %d", seed, len(arenas), len(q))
		}
	}
}
