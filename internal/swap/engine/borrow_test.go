package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/cuda"
)

// borrower has streams write and read memory of the host that it borrows, in any order that they allow.
type borrower struct {
	t       testing.TB
	rng     *rand.Rand
	d       *device
	e       *Engine
	streams [users]cuda.Stream
	live    []use
	next    byte
	full    int
}

// use is a loan whose ends hold a pattern.
type use struct {
	p       cuda.Ptr
	size    int64
	memory  []byte
	pattern byte
	first   cuda.Stream
}

func newBorrower(t testing.TB, seed uint64, budget int64) *borrower {
	b := &borrower{t: t, rng: rand.New(rand.NewPCG(seed, 7))}
	b.d = newDevice(t, b.rng, 1)
	for i := range b.streams {
		b.streams[i], _ = b.d.StreamCreate()
	}
	var err error
	if b.e, err = Open(b.d, Options{Budget: budget, Node: -1, InPlace: true, Allowance: NewAllowance(budget)}); err != nil {
		t.Fatal(err)
	}
	b.e.patience = time.Millisecond
	b.d.fail = func(c call) bool { // time passes while it waits
		if c == eventQuery && b.rng.IntN(4) == 0 {
			b.d.step()
		}
		return false
	}
	return b
}

func (b *borrower) stream() cuda.Stream { return b.streams[b.rng.IntN(users)] }

// borrow takes memory and has its first stream write it.
func (b *borrower) borrow() {
	n := 1 + b.rng.Int64N(3<<20)
	if b.rng.IntN(2) == 0 {
		n = 1 + b.rng.Int64N(8<<10)
	}
	b.next++
	u := use{size: n, pattern: b.next, first: b.stream()}
	var err error
	u.p, err = b.e.Borrow(n, u.first)
	if full := (*FullError)(nil); errors.As(err, &full) {
		b.full++
		return
	}
	if err != nil {
		b.t.Fatal(err)
	}
	for _, other := range b.live {
		if u.p < other.p+cuda.Ptr(other.size) && other.p < u.p+cuda.Ptr(n) {
			b.t.Fatalf("%d bytes at %#x overlap %d at %#x", n, u.p, other.size, other.p)
		}
	}
	l := b.e.borrowed.loans[u.p]
	at := l.region.arena.slots[l.slot].at
	u.memory = l.region.memory.Bytes()[at : at+n]
	if b.d.pieceOf(u.memory) < 0 {
		b.t.Fatalf("%d bytes are not pinned as one", n)
	}
	b.live = append(b.live, u)
	b.d.put(u.first, op{run: func() {
		for i := range u.ends() {
			u.memory[i] = u.pattern
		}
	}})
}

// ends yields the places of the first and the last bytes.
func (u *use) ends() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range min(u.size, 64) {
			if !yield(int(i)) || !yield(int(u.size-1-i)) {
				return
			}
		}
	}
}

// read has a stream read what is borrowed, behind what its first one wrote.
func (b *borrower) read(u use, s cuda.Stream) {
	if s != u.first {
		written := b.d.record(u.first)
		b.d.put(s, op{wait: b.d.point(written)})
		b.d.forget(written)
	}
	b.d.put(s, op{run: func() {
		for i := range u.ends() {
			if u.memory[i] != u.pattern {
				b.t.Fatalf("byte %d of %d at %#x is %d, want %d", i, u.size, u.p, u.memory[i], u.pattern)
			}
		}
	}})
	if s != u.first && !b.e.Use(u.p+cuda.Ptr(b.rng.Int64N(u.size)), s) {
		b.t.Fatalf("%#x is not known", u.p)
	}
}

func (b *borrower) giveBack(i int) {
	if !b.e.Return(b.live[i].p) || b.e.Return(b.live[i].p) {
		b.t.Fatalf("%#x is returned twice, or not at all", b.live[i].p)
	}
	b.live = slices.Delete(b.live, i, i+1)
}

func (b *borrower) step() {
	switch at := b.rng.IntN(8); {
	case at < 2:
		b.borrow()
	case at < 4 && len(b.live) > 0:
		b.read(b.live[b.rng.IntN(len(b.live))], b.stream())
	case at < 6 && len(b.live) > 0:
		b.giveBack(b.rng.IntN(len(b.live)))
	default:
		b.d.step()
	}
}

// end returns all, and closes the engine.
func (b *borrower) end() {
	for len(b.live) > 0 {
		b.giveBack(0)
	}
	if s := b.e.Stats(); s.Borrowed != 0 || s.BorrowedPeak == 0 || s.Borrows == 0 {
		b.t.Errorf("%d bytes are borrowed at the end, %d at most, %d times", s.Borrowed, s.BorrowedPeak, s.Borrows)
	}
	if err := b.e.Close(); err != nil {
		b.t.Fatal(err)
	}
	for _, s := range b.streams {
		if err := b.d.StreamDestroy(s); err != nil {
			b.t.Fatal(err)
		}
	}
	if got := b.d.holds(); got != holdsNothing {
		b.t.Errorf("the device holds %s", got)
	}
}

// TestBorrow has no stream find other bytes than were written, however late it comes.
func TestBorrow(t *testing.T) {
	full := 0
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := newBorrower(t, seed, 24<<20)
			for range 600 {
				b.step()
			}
			full += b.full
			b.end()
		})
	}
	if full == 0 {
		t.Error("the budget was never used up")
	}
}

// TestBorrowFaults has calls of the driver fail now and then, and streams be captured.
func TestBorrowFaults(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := newBorrower(t, seed, 16<<20)
			b.d.fail = func(c call) bool {
				return (c == eventRecord || c == synchronize || c == eventQuery || c == capturing || c == hostRegister || c == hostUnregister) &&
					b.rng.IntN(6) == 0
			}
			for range 600 {
				b.step()
			}
			b.d.fail = func(call) bool { return false }
			b.end()
		})
	}
}

// TestBorrowAgain has a stream that returns memory and borrows as much get the same, without a wait.
func TestBorrowAgain(t *testing.T) {
	b := newBorrower(t, 1, 64<<20)
	first, err := b.e.Borrow(1<<20, b.streams[0])
	if err != nil {
		t.Fatal(err)
	}
	b.d.put(b.streams[0], op{}) // work that is under way
	b.e.Return(first)
	if other, err := b.e.Borrow(1<<20, b.streams[1]); err != nil || other == first {
		t.Errorf("another stream has memory at %#x that is in use, %v", other, err)
	} else {
		b.e.Return(other)
	}
	if again, err := b.e.Borrow(1<<20-100, b.streams[0]); err != nil || again != first {
		t.Errorf("memory at %#x, not %#x again, %v", again, first, err)
	} else {
		b.e.Return(again)
	}
	b.end()
}

// TestBorrowRefused asks for what there is not.
func TestBorrowRefused(t *testing.T) {
	b := newBorrower(t, 1, 8<<20)
	full := (*FullError)(nil)
	if _, err := b.e.Borrow(9<<20, b.streams[0]); !errors.As(err, &full) || !errors.Is(err, ErrAllowance) {
		t.Errorf("more than the budget: %v", err)
	}
	if _, err := b.e.Borrow(0, b.streams[0]); !errors.Is(err, ErrSize) {
		t.Errorf("nothing: %v", err)
	}
	b.e.inPlace = false
	if _, err := b.e.Borrow(1, b.streams[0]); !errors.Is(err, ErrInPlace) {
		t.Errorf("a GPU that uses other addresses: %v", err)
	}
	b.e.inPlace = true
	p, err := b.e.Borrow(7<<20, b.streams[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.Borrow(2<<20, b.streams[1]); !errors.As(err, &full) {
		t.Errorf("more than is left: %v", err)
	}
	if b.e.Use(p-1, b.streams[0]) || b.e.Return(p+1) {
		t.Error("other memory is known")
	}
	b.e.Return(p)
	if _, _, ok := b.e.Borrowed(p); ok {
		t.Error("what was returned is known")
	}
	b.end()
	if _, err := b.e.Borrow(1, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestBorrowSteadily has no more memory pinned as time goes on.
func TestBorrowSteadily(t *testing.T) {
	b := newBorrower(t, 1, 64<<20)
	for i := range 200 {
		p, err := b.e.Borrow(3<<20, b.streams[i%users])
		if err != nil {
			t.Fatal(err)
		}
		b.e.Return(p)
		for b.d.step() {
		}
	}
	if n := len(b.e.borrowed.regions); n != 1 {
		t.Errorf("%d regions for one loan at a time", n)
	}
	b.end()
}

// TestBorrowEnded has memory come back that streams use which have ended.
func TestBorrowEnded(t *testing.T) {
	b := newBorrower(t, 1, 16<<20)
	for range 20 {
		p, err := b.e.Borrow(3<<20, b.streams[0])
		if err != nil {
			t.Fatal(err)
		}
		b.e.Use(p, b.streams[1])
		b.d.fail = func(c call) bool { return c == eventRecord }
		b.e.Return(p)
		b.d.fail = func(call) bool { return false }
	}
	b.end()
}

// TestBorrowShared has two engines of one allowance: what one lends for a while is not lost to the other.
func TestBorrowShared(t *testing.T) {
	a, b := newBorrower(t, 1, 64<<20), newBorrower(t, 2, 64<<20)
	b.e.allowance = a.e.allowance
	p, err := a.e.Borrow(64<<20, a.streams[0])
	if err != nil {
		t.Fatal(err)
	}
	full := (*FullError)(nil)
	if _, err := b.e.Out(base, 1, b.streams[0]); !errors.As(err, &full) {
		t.Errorf("a copy to a host that is full: %v", err)
	}
	a.e.Return(p)
	for a.d.step() {
	}
	a.e.collectReturned()
	a.e.releaseIdle()
	name, err := b.e.Out(base, 1, b.streams[0])
	if err != nil {
		t.Fatalf("when there is room: %v", err)
	}
	if err := b.e.Drop(name); err != nil {
		t.Error(err)
	}
	p, err = b.e.Borrow(32<<20, b.streams[0])
	if err != nil {
		t.Fatal(err)
	}
	b.e.Return(p)
	a.end()
	b.end()
}

// TestBorrowAhead borrows what was taken ahead for tickets that were never made.
func TestBorrowAhead(t *testing.T) {
	b := newBorrower(t, 1, 64<<20)
	b.e.Expect(64 << 20)
	p, err := b.e.Borrow(48<<20, b.streams[0])
	if err != nil {
		t.Fatal(err)
	}
	b.e.Return(p)
	b.end()
}

// TestBorrowLarger borrows as much as many loans that have just been returned, and are still used.
func TestBorrowLarger(t *testing.T) {
	b := newBorrower(t, 1, 64<<20)
	var small []cuda.Ptr
	for range 16 {
		p, err := b.e.Borrow(4<<20, b.streams[0])
		if err != nil {
			t.Fatal(err)
		}
		b.d.put(b.streams[0], op{})
		small = append(small, p)
	}
	for _, p := range small {
		b.e.Return(p)
	}
	b.e.patience = time.Minute
	p, err := b.e.Borrow(32<<20, b.streams[1])
	if err != nil {
		t.Fatal(err)
	}
	b.e.Return(p)
	b.end()
}
