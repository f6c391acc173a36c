package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gm/internal/cuda"
	"gm/internal/swap/host"
)

func TestMisuse(t *testing.T) {
	p := newProgram(t, 1, small)
	e, s := p.e, p.streams[0]
	for _, name := range []Ticket{0, 1, -1, 1 << 32, 1<<63 - 1, -1 << 63} {
		_, err := e.Copied(name)
		for call, err := range map[string]error{
			"Left": e.Left(name, s), "In": e.In(name, base, s), "Ready": e.Ready(name, s), "Drop": e.Drop(name), "Copied": err,
		} {
			if !errors.Is(err, ErrTicket) {
				t.Errorf("%s of ticket %d, which is none: %v", call, name, err)
			}
		}
	}
	for _, n := range []int64{0, -1, -1 << 63} {
		if _, err := e.Out(base, n, s); !errors.Is(err, ErrSize) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := e.Out(0, 1, s); !errors.Is(err, ErrNone) {
		t.Errorf("out of address 0: %v", err)
	}
	full := fmt.Sprintf("host memory is full: 4611686018427387904 bytes asked, 0 of %[1]d bytes in use, %[1]d free in one piece", small.Budget)
	if _, err := e.Out(base, 1<<62, s); err == nil || err.Error() != full {
		t.Errorf("2^62 bytes: %v", err)
	}
	name, err := e.Out(base, 1000, s)
	if err != nil || name <= 0 {
		t.Fatalf("ticket %d, %v", name, err)
	}
	if err := e.Ready(name, s); !errors.Is(err, ErrNotIn) {
		t.Errorf("ready before in: %v", err)
	}
	if err := e.In(name, 0, s); !errors.Is(err, ErrNone) {
		t.Errorf("in to address 0: %v", err)
	}
	if err := errors.Join(e.Left(name, s), e.Left(name, p.streams[1]), e.Drop(name)); err != nil {
		t.Error(err)
	}
	if err := e.Drop(name); !errors.Is(err, ErrTicket) {
		t.Errorf("dropped twice: %v", err)
	}
	again, err := e.Out(base, 1000, s)
	if err != nil || again == name || !errors.Is(e.Drop(name), ErrTicket) {
		t.Errorf("ticket %d, then %d, %v", name, again, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	_, out := e.Out(base, 1, s)
	_, copied := e.Copied(again)
	for i, err := range []error{out, copied, e.Left(again, s), e.In(again, base, s), e.Ready(again, s), e.Drop(again), e.Close()} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("call %d after the end: %v", i, err)
		}
	}
	if s := e.Stats(); s.CopiesOut != 2 || s.Live != 0 {
		t.Errorf("after the end: %+v", s)
	}
}

// locked is a device that goes on by itself, and that threads share with what uses it.
type locked struct {
	mu sync.Mutex
	p  *program
}

// TestThreads has goroutines copy out and in, each tensors and cells of its own, while the device goes on beside them.
func TestThreads(t *testing.T) {
	l := locked{p: newProgram(t, 1, Options{Budget: 64 * host.Page(), Chunk: 2 * host.Page(), Timed: true})}
	stop := make(chan struct{})
	var runner, group sync.WaitGroup
	runner.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				l.mu.Lock()
				l.p.d.step()
				l.mu.Unlock()
			}
		}
	})
	for g := range 8 {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 6))
			for range 100 {
				l.turn(g, rng)
			}
		})
	}
	group.Wait()
	close(stop)
	runner.Wait()
	l.p.finish()
}

// turn moves a tensor of a thread's cell to the host and back, each call by itself.
func (l *locked) turn(g int, rng *rand.Rand) {
	var tensor tensor
	do := func(call func(p *program) error) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		err := call(l.p)
		var full *FullError
		if err != nil && !errors.As(err, &full) {
			l.p.t.Error(err)
		}
		return err == nil
	}
	s := l.p.stream(g)
	ok := do(func(p *program) (err error) {
		p.next++
		tensor.pattern, tensor.size = p.next, 1+rng.Int64N(cellSize)
		p.fill(g, tensor.pattern, tensor.size)
		tensor.name, err = p.e.Out(p.at(g), tensor.size, s)
		return err
	})
	if !ok {
		return
	}
	do(func(p *program) error { return p.e.Left(tensor.name, s) })
	do(func(p *program) error { p.fill(g, 0, cellSize); return nil })
	for range 1 + rng.IntN(2) {
		do(func(p *program) error { return p.e.In(tensor.name, p.at(g), s) })
		do(func(p *program) error { return p.e.Ready(tensor.name, s) })
		do(func(p *program) error { p.check(g, tensor); return nil })
		do(func(p *program) error { _, err := p.e.Copied(tensor.name); return err })
	}
	do(func(p *program) error { return p.e.Drop(tensor.name) })
}

// quick is a device on which everything is done at once, and costs nothing.
type quick struct{}

func (quick) StreamCreate() (cuda.Stream, error)          { return 1, nil }
func (quick) StreamDestroy(cuda.Stream) error             { return nil }
func (quick) StreamSynchronize(cuda.Stream) error         { return nil }
func (quick) HostRegister([]byte) error                   { return nil }
func (quick) HostUnregister([]byte) error                 { return nil }
func (quick) Follow(cuda.Stream, cuda.Event) error        { return nil }
func (quick) EventRecord(cuda.Stream) (cuda.Event, error) { return 1, nil }
func (quick) Synchronize() error                          { return nil }
func (quick) Capturing(cuda.Stream) (bool, error)         { return false, nil }
func (quick) EventQuery(cuda.Event) (bool, error)         { return true, nil }
func (quick) EventDestroy(cuda.Event) error               { return nil }
func (quick) IntervalDestroy(cuda.Interval)               {}
func (quick) Transfer(cuda.Transfer) (cuda.Event, cuda.Interval, error) {
	return 1, cuda.Interval{Begin: 2, End: 3}, nil
}
func (quick) Elapsed(cuda.Interval) (time.Duration, bool, error) { return 1, true, nil }

// steps moves tensors out and in, hundreds of them at a time.
type steps struct {
	t     testing.TB
	e     *Engine
	names [400]Ticket
	n     int
}

func newSteps(t testing.TB, timed bool) *steps {
	e, err := Open(quick{}, Options{Budget: 1 << 30, Chunk: 1 << 20, Node: -1, Timed: timed})
	if err != nil {
		t.Fatal(err)
	}
	s := &steps{t: t, e: e}
	for range 3 * len(s.names) {
		s.step()
	}
	return s
}

// step makes the five calls for one tensor, of which the last ones are for the one whose place it takes.
func (s *steps) step() {
	i := s.n * 7 % len(s.names)
	s.n++
	if before := s.names[i]; before != 0 {
		err := s.e.In(before, base, 0)
		if err == nil {
			err = s.e.Ready(before, 0)
		}
		if err == nil {
			err = s.e.Drop(before)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	name, err := s.e.Out(base, int64(1+s.n*7919%100_000), 0)
	if err == nil {
		err = s.e.Left(name, 0)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.names[i] = name
}

// TestNothingAllocated: what runs for each tensor leaves nothing for the garbage collector.
func TestNothingAllocated(t *testing.T) {
	for _, timed := range []bool{false, true} {
		s := newSteps(t, timed)
		if n := testing.AllocsPerRun(2000, s.step); n != 0 {
			t.Errorf("timed %v: %v allocations a tensor", timed, n)
		}
		if err := s.e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkTensor is the engine's part of Out, Left, In, Ready and Drop.
func BenchmarkTensor(b *testing.B) {
	s := newSteps(b, false)
	b.ReportAllocs()
	for b.Loop() {
		s.step()
	}
	if err := s.e.Close(); err != nil {
		b.Error(err)
	}
}
