package dsa

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// repetitive returns a problem of parts that come again, some after each other, some apart, with buffers among them
// that live for longer.
func repetitive(rng *rand.Rand) *Problem {
	p := &Problem{Align: []int64{1, 512}[rng.IntN(2)]}
	now := int64(0)
	kinds := make([]*Problem, 1+rng.IntN(4))
	for i := range kinds {
		kinds[i] = random(rng, 1+rng.IntN(30), p.Align)
	}
	for range 1 + rng.IntN(12) {
		kind := kinds[rng.IntN(len(kinds))]
		span := slices.Max(kind.End) + 1
		for range 1 + rng.IntN(5) {
			for i := range kind.Size {
				p.add(now+kind.Start[i], now+kind.End[i], kind.Size[i])
			}
			if rng.IntN(3) > 0 {
				p.add(now+rng.Int64N(span), now+rng.Int64N(8*span)+span, 4096)
			}
			now += span
		}
		p.add(now, now+rng.Int64N(1000), rng.Int64N(1<<16))
	}
	return p
}

func TestBilevel(t *testing.T) {
	solver := Bilevel().(bilevel)
	folded := 0
	for seed := range uint64(300) {
		p := repetitive(rand.New(rand.NewPCG(seed, 6)))
		l, err := solver.solveRepeats(t.Context(), p, Options{})
		if errors.Is(err, ErrNoRepeats) {
			continue
		}
		if err == nil {
			err = Check(p, l)
		}
		if err != nil || l.Bound != load(p) || l.Method != "bilevel" {
			t.Fatalf("seed %d: bound %d, expected %d, by %s: %v", seed, l.Bound, load(p), l.Method, err)
		}
		if float64(l.Peak) > 2*float64(l.Bound) {
			t.Errorf("seed %d: peak %d, bound %d", seed, l.Peak, l.Bound)
		}
		folded++
	}
	if folded < 150 {
		t.Errorf("%d of 300 problems had repeated parts", folded)
	}
}

// TestOneAddressForAll says that what repeats has the same place in its box everywhere.
func TestOneAddressForAll(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 7))
		kind, p := random(rng, 40, 1), &Problem{Align: 1}
		p.add(200_000, 200_001, 1<<40) // no box is more than that
		const layers = 9
		for layer := range int64(layers) {
			p.add(2000*layer, 100_000, 500)
			for i := range kind.Size {
				p.add(2000*layer+kind.Start[i], 2000*layer+kind.End[i], kind.Size[i])
			}
		}
		l, err := Bilevel().Solve(t.Context(), p, Options{})
		if err != nil || Check(p, l) != nil {
			t.Fatalf("seed %d: %v, %v", seed, err, Check(p, l))
		}
		f := foldParts(p, newEvents(p))
		first := map[int32]box{}
		for _, b := range f.boxes {
			other, seen := first[b.class]
			if !seen {
				first[b.class] = b
				continue
			}
			for k := range b.buffers {
				if l.Offsets[b.buffers[k]]-l.Offsets[b.buffers[0]] != l.Offsets[other.buffers[k]]-l.Offsets[other.buffers[0]] {
					t.Fatalf("seed %d: two boxes of class %d differ", seed, b.class)
				}
			}
		}
	}
}

// TestSlack has iterations that keep a little until the next is under way, when most lives: without slack they fit no box.
func TestSlack(t *testing.T) {
	p := &Problem{Align: 1}
	for iteration := range int64(10) {
		for i := range int64(50) {
			p.add(100*iteration+i, 100*iteration+100-i, 20)
		}
		p.add(100*iteration+98, 100*iteration+102, 5)
	}
	strict := Bilevel().(bilevel)
	if _, err := strict.solveRepeats(t.Context(), p, Options{}); !errors.Is(err, ErrNoRepeats) {
		t.Errorf("without slack: error %v", err)
	}
	strict.slack = 0.01
	l, err := strict.solveRepeats(t.Context(), p, Options{})
	if err != nil || Check(p, l) != nil || l.Peak <= l.Bound || float64(l.Peak) > 1.01*float64(l.Bound) {
		t.Errorf("peak %d, bound %d: %v, %v", l.Peak, l.Bound, err, Check(p, l))
	}
}

func TestBilevelWithoutRepeats(t *testing.T) {
	p := random(rand.New(rand.NewPCG(1, 8)), 500, 1)
	fixed := &Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{1}, Align: 1, Fixed: []int64{0}}
	for _, p := range []*Problem{{Align: 1}, p, fixed} {
		if _, err := Bilevel().(bilevel).solveRepeats(t.Context(), p, Options{}); !errors.Is(err, ErrNoRepeats) {
			t.Errorf("error %v", err)
		}
		if _, err := FoldRepeats(t.Context(), p, Bilevel()); !errors.Is(err, ErrNoRepeats) {
			t.Errorf("error %v", err)
		}
	}
	if l, err := Bilevel().Solve(t.Context(), p, Options{}); err != nil || Check(p, l) != nil {
		t.Errorf("solved as a whole: %v, %v", err, Check(p, l))
	}
	if _, err := Bilevel().Solve(t.Context(), &Problem{}, Options{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("invalid: error %v", err)
	}
}

func TestBilevelIsDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(10) {
		p := repetitive(rand.New(rand.NewPCG(seed, 9)))
		var first Layout
		for _, cores := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(cores)
			l, err := Bilevel().Solve(t.Context(), p, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if cores == 1 {
				first = l
			} else if !slices.Equal(l.Offsets, first.Offsets) {
				t.Fatalf("seed %d: another layout on %d cores", seed, cores)
			}
		}
	}
}

// slow never ends by itself.
type slow struct{}

func (slow) Solve(ctx context.Context, p *Problem, o Options) (Layout, error) {
	<-ctx.Done()
	return Layout{}, ctx.Err()
}

// TestBilevelOutOfTime has a first level that takes all of its time, and then is done without.
func TestBilevelOutOfTime(t *testing.T) {
	p := &Problem{Align: 1}
	for layer := range int64(20) {
		for i := range int64(20) {
			p.add(100*layer+i, 100*layer+i+30, 5+i)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	l, err := bilevel{parts: slow{}, whole: solver(t, "skyline-A")}.Solve(ctx, p, Options{})
	if err != nil || Check(p, l) != nil {
		t.Fatalf("%v, %v", err, Check(p, l))
	}
	cancel()
	if _, err := Bilevel().Solve(ctx, p, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
