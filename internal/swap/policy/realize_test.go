package policy

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap/draft"
)

// randomTrips returns trips of some gaps of a random problem, partly copied, as realize begins with them.
func randomTrips(seed uint64) (*problem, []draft.Trip) {
	g, l := randomProblem(seed, 40)
	if plain := g.Plain(); seed%2 == 0 {
		l.Device = plain[int(seed)%len(plain)] // some operators are just at the limit
	}
	p := newProblem(g, l)
	r := rand.New(rand.NewPCG(seed, 9))
	var trips []draft.Trip
	for _, x := range newChooser(p).all {
		bytes := x.bytes
		if x.able && r.IntN(2) == 0 {
			bytes = []int64{0, 0, x.bytes / 2}[r.IntN(3)]
		}
		if r.IntN(3) > 0 {
			trips = append(trips, draft.Trip{Tensor: x.Tensor, Bytes: bytes, After: x.After, Free: x.After + 1, Back: x.Before, Need: x.Before})
		}
	}
	return p, p.Advance(trips)
}

// deadSources adds the tensors to a set that some is computed from, directly or through others, and that have seen their last use.
func deadSources(p *problem, t, op int32, set map[int32]bool) {
	for _, from := range p.Graph.Tensors[t].From {
		if p.Graph.Tensors[from].Last() < op && !set[from] {
			set[from] = true
			deadSources(p, from, op, set)
		}
	}
}

// TestUsage compares the memory and the time of recomputation with sums over trips for each operator.
func TestUsage(t *testing.T) {
	ghosts, parts := 0, 0
	for seed := range uint64(400) {
		p, trips := randomTrips(seed)
		least, want := p.recomputes(trips), time.Duration(0)
		usage := p.usage(trips)
		for op := range p.Ops() {
			set, took, bytes, certain, beside := map[int32]bool{}, time.Duration(0), p.Plain[op], true, int64(0)
			for _, x := range trips {
				y := &p.Graph.Tensors[x.Tensor]
				if x.Free <= op && op < x.Need {
					bytes -= y.Bytes
				}
				if x.Need == op && x.Bytes < y.Bytes {
					took += time.Duration(float64(y.Recompute) * float64(y.Bytes-x.Bytes) / float64(y.Bytes))
					certain, beside = certain && x.Bytes == 0, max(beside, y.Scratch)
					deadSources(p, x.Tensor, op, set)
				}
			}
			for ghost := range set {
				took, bytes = took+p.Graph.Tensors[ghost].Recompute, bytes+p.Graph.Tensors[ghost].Bytes
				beside = max(beside, p.Graph.Tensors[ghost].Scratch)
				ghosts++
			}
			if bytes += beside; usage[op] != bytes || p.work.again[op] != took {
				t.Fatalf("seed %d, operator %d: %d bytes, %v of recomputation, expected %d, %v", seed, op, usage[op], p.work.again[op], bytes, took)
			}
			if certain {
				want += took
			} else {
				parts++
			}
		}
		if least != want {
			t.Fatalf("seed %d: recomputation of %v at least, expected %v", seed, least, want)
		}
	}
	if ghosts < 30 || parts < 100 {
		t.Errorf("%d ghosts, %d operators that recompute parts of tensors", ghosts, parts)
	}
}

// delayed lets copying trips begin where memory is short, the first one first, and leaves out those for which it never is.
func delayed(p *problem, trips []draft.Trip) []draft.Trip {
	waiting := make([]bool, len(trips))
	trips = slices.Clone(trips)
	for op := range p.Ops() {
		used := p.Plain[op] + p.work.ghosts[op]
		for i := range trips {
			x := &trips[i]
			if op == x.Free && x.Bytes > 0 {
				waiting[i] = true
			}
			if waiting[i] && op == x.Need {
				waiting[i], x.Free = false, x.Need
			}
			if !waiting[i] && x.Free <= op && op < x.Need {
				used -= p.Graph.Tensors[x.Tensor].Bytes
			}
		}
		for i := range trips {
			if waiting[i] && used > p.Limits.Device {
				waiting[i], trips[i].Free = false, op
				used -= p.Graph.Tensors[trips[i].Tensor].Bytes
			}
		}
	}
	return slices.DeleteFunc(trips, func(x draft.Trip) bool { return x.Free == x.Need })
}

// fittingTrips returns random trips that keep to the limit and the bytes in use with them; no trips where those of the seed do not.
func fittingTrips(seed uint64) (*problem, []draft.Trip, []int64) {
	p, trips := randomTrips(seed)
	p.recomputes(trips)
	usage := p.usage(trips)
	if slices.Max(usage) > p.Limits.Device {
		return p, nil, nil
	}
	return p, trips, usage
}

// TestDelay compares with trips that are delayed plainly. The time that dropped ones save is that of the operators they would end at.
func TestDelay(t *testing.T) {
	moved, dropped := 0, 0
	for seed := range uint64(400) {
		p, trips, usage := fittingTrips(seed)
		if trips == nil {
			continue
		}
		want := delayed(p, trips)
		before := slices.Clone(trips)
		got, less := p.delay(trips, usage)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, expected %v", seed, got, want)
		}
		saved := time.Duration(0)
		for _, x := range before {
			same := func(y draft.Trip) bool { return y.Tensor == x.Tensor && y.Need == x.Need }
			i := slices.IndexFunc(want, same)
			if i < 0 && p.Rest(&x) > 0 {
				saved += p.work.again[x.Need]
			}
			if i < 0 {
				dropped++
			} else if want[i].Free != x.Free {
				moved++
			}
		}
		if less != saved {
			t.Fatalf("seed %d: dropped trips save %v, expected %v", seed, less, saved)
		}
	}
	if moved < 50 || dropped < 50 {
		t.Errorf("%d trips begin later, %d not at all", moved, dropped)
	}
}

// TestPace follows the operators and the lane to the host: a tensor's first copy begins at its operator when the lane is idle, and where the
// tensor is freed the operator waits for that.
func TestPace(t *testing.T) {
	waited, hastened := 0, 0
	for seed := range uint64(400) {
		p, trips, usage := fittingTrips(seed)
		if trips == nil {
			continue
		}
		trips, _ = p.delay(trips, usage)
		p.Queue(trips)
		got := p.pace(trips)
		ends := map[int32]time.Duration{}
		now, lane := time.Duration(0), time.Duration(0)
		before := make([]time.Duration, 0, p.Ops())
		for op := range p.Ops() {
			before = append(before, now)
			for i, x := range trips {
				first := !slices.ContainsFunc(trips[:i], func(y draft.Trip) bool { return y.Tensor == x.Tensor && y.Bytes > 0 })
				if _, gone := ends[x.Tensor]; x.Bytes > 0 && first && x.Out <= op && !gone {
					lane = max(lane, now) + p.Limits.Link.OutTime(x.Bytes)
					ends[x.Tensor] = lane
				}
			}
			for _, x := range trips {
				if x.Free == op && ends[x.Tensor] > now {
					now = ends[x.Tensor]
					waited++
				}
			}
			if now += p.work.again[op]; got[op] != now {
				t.Fatalf("seed %d: operator %d begins at %v, expected %v", seed, op, got[op], now)
			}
			now += p.Graph.Ops[op].Duration
		}
		if got[p.Ops()] != now {
			t.Fatalf("seed %d: the step takes %v, expected %v", seed, got[p.Ops()], now)
		}
		want := slices.Clone(trips)
		for i := range want {
			x := &want[i]
			first := slices.IndexFunc(before, func(at time.Duration) bool { return at >= ends[x.Tensor] })
			if first >= 0 && int32(first) < x.Free {
				x.Free = max(x.After+1, int32(first))
				hastened++
			}
		}
		if p.hasten(trips); !slices.Equal(trips, want) {
			t.Fatalf("seed %d: %v, expected %v", seed, trips, want)
		}
	}
	if waited < 50 || hastened < 50 {
		t.Errorf("%d waits, %d trips begin earlier", waited, hastened)
	}
}
