package blocks

import (
	"errors"
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// used is a block that is or was in use.
type used struct {
	ptr     cuda.Ptr
	size    int64
	stream  cuda.Stream
	pool    Pool
	until   int // requests, for a block that follows a plan
	extents []sim.Extent
	last    []point // the last work in each stream that used it
}

// crossing drives an allocator with random requests on streams that run behind. All streams but the last have memory of their own; that
// one only borrows.
type crossing struct {
	t     testing.TB
	rng   *rand.Rand
	dev   *streams
	a     Allocator
	mixed bool   // requests of all sizes and of private pools
	cycle *Cycle // what most requests follow
	at    int    // in the cycle
	count int    // requests
	fails func(err error) bool
	owes  func() bool // the device has not released all that it was told to

	live []used
	past []used // what was freed: its memory may be reused behind its last work
	ooms int
}

func (r *crossing) step() {
	if r.cycle != nil && r.rng.IntN(3) > 0 {
		r.follow()
	} else {
		r.wander()
	}
	if s := r.a.Stats(); (s.Reserved != r.dev.Used() && (r.owes == nil || !r.owes())) || s.Allocated > s.Reserved {
		r.t.Fatalf("%+v, but %d bytes are taken from the device", s, r.dev.Used())
	}
}

// wander does something at random.
func (r *crossing) wander() {
	switch x := r.rng.IntN(1000); {
	case x < 480 && len(r.live) < 150:
		size := int64(1<<20) + 1 + r.rng.Int64N(1<<(21+r.rng.IntN(7)))
		var pool Pool
		if r.mixed && r.rng.IntN(4) == 0 {
			size = 1 + size>>r.rng.IntN(12)
		}
		if r.mixed && r.rng.IntN(20) == 0 {
			pool, size = Pool(1+r.rng.IntN(2)), 1+size/8
		}
		if r.cycle == nil || r.rng.IntN(20) == 0 {
			r.malloc(size, r.stream(), pool)
		}
	case x < 990:
		if len(r.live) > 0 && (r.cycle == nil || r.rng.IntN(20) == 0) {
			r.drop(r.rng.IntN(len(r.live)))
		}
	case x < 995:
		r.check(r.a.Empty())
	default:
		r.phase()
	}
}

func (r *crossing) stream() cuda.Stream { return cuda.Stream(r.rng.IntN(int(r.dev.n) - 1)) }

// follow makes the next request of the cycle and frees what is due, most of the time.
func (r *crossing) follow() {
	if r.rng.IntN(500) == 0 {
		r.at = r.rng.IntN(len(r.cycle.Steps))
	}
	for i := len(r.live) - 1; i >= 0; i-- {
		if r.live[i].until > 0 && r.live[i].until <= r.count && r.rng.IntN(50) > 0 {
			r.drop(i)
		}
	}
	s := &r.cycle.Steps[r.at]
	n := len(r.live)
	r.malloc(s.Size, s.Stream, 0)
	r.count++
	if len(r.live) > n {
		r.live[n].until = r.count - 1 + int(max(s.Lasts, 1))
	}
	r.at = (r.at + 1) % len(r.cycle.Steps)
}

// check ends the test on an error that is not expected.
func (r *crossing) check(err error) {
	if err != nil && (r.fails == nil || !r.fails(err)) {
		r.t.Helper()
		r.t.Fatal(err)
	}
}

// capture begins or ends the capture of a graph.
func (r *crossing) capture(on bool) {
	if !on {
		r.dev.capturing = false
	}
	r.check(r.a.(interface{ Capture(on bool) error }).Capture(on))
	r.dev.capturing = on
}

// phase frees what one stream holds, so that others can have it.
func (r *crossing) phase() {
	s := r.stream()
	for i := len(r.live) - 1; i >= 0; i-- {
		if r.live[i].stream == s {
			r.drop(i)
		}
	}
}

func (r *crossing) malloc(size int64, stream cuda.Stream, pool Pool) {
	p, err := r.a.Malloc(size, stream, pool)
	var oom *OOMError
	if errors.As(err, &oom) || errors.Is(err, cuda.ErrOutOfMemory) { // the latter of a hasty one
		r.ooms++
		return
	} else if err != nil {
		r.check(err)
		return
	}
	extents, err := r.dev.Extents(p, size)
	if err != nil {
		r.t.Fatal(err)
	}
	b := used{ptr: p, size: size, stream: stream, pool: pool, extents: extents}
	for _, other := range r.live {
		if overlap(b.extents, other.extents) {
			r.t.Fatalf("block at %#x shares memory with that at %#x", p, other.ptr)
		}
	}
	kept := r.past[:0]
	for _, other := range r.past {
		settled := true
		for _, last := range other.last {
			settled = settled && r.dev.done(last)
			if overlap(b.extents, other.extents) && !r.dev.after(stream, last) {
				r.t.Fatalf("stream %d gets memory that stream %d still uses", stream, last.stream)
			}
		}
		if !settled {
			kept = append(kept, other)
		}
	}
	r.past = kept
	b.last = append(b.last, r.dev.work(stream, p, size))
	r.live = append(r.live, b)
}

func overlap(a, b []sim.Extent) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Overlaps(y) {
				return true
			}
		}
	}
	return false
}

// drop frees a block after more work that uses it, now and then in another stream, too.
func (r *crossing) drop(i int) {
	b := r.live[i]
	r.live[i] = r.live[len(r.live)-1]
	r.live = r.live[:len(r.live)-1]
	b.last = append(b.last, r.dev.work(b.stream, b.ptr, b.size))
	for range 2 {
		if r.rng.IntN(8) > 0 {
			continue
		}
		other := cuda.Stream(r.rng.IntN(int(r.dev.n)))
		b.last = append(b.last, r.dev.work(other, b.ptr, b.size))
		r.check(r.a.RecordStream(b.ptr, other))
	}
	r.check(r.a.Free(b.ptr))
	r.past = append(r.past, b)
}

// replan now and then abandons the plan, adopts it again where there is none, has requests be hasty or not, says that an iteration begins, or
// requests what no part of an arena may have.
func (r *crossing) replan(a *Cyclic) {
	switch r.rng.IntN(400) {
	case 0:
		if err := a.Abandon(); !errors.Is(err, cuda.ErrCapturing) {
			r.check(err)
		}
	case 1:
		a.SetHasty(!a.hasty)
	case 2:
		a.Mark(1 << 10)
	case 3, 4:
		r.malloc(int64(1+r.rng.IntN(200))<<20, r.stream(), 0)
	}
	if planned, _ := a.Planned(); !planned && r.rng.IntN(50) == 0 {
		a.StopRecording()
		r.check(a.Adopt(r.cycle))
	}
}

// finish frees everything and expects nothing to be left.
func (r *crossing) finish() {
	for len(r.live) > 0 {
		r.drop(0)
	}
	if c, ok := r.a.(*Cyclic); ok {
		r.check(c.Abandon())
	}
	if err := r.a.Empty(); err != nil {
		r.t.Fatal(err)
	}
	for pool := range Pool(3) {
		if none, err := r.a.(interface{ EmptyPool(Pool) (bool, error) }).EmptyPool(pool); pool > 0 && (!none || err != nil) {
			r.t.Errorf("pool %d is left: %v", pool, err)
		}
	}
	if s := r.a.Stats(); s.Allocated != 0 || s.Reserved != 0 || r.dev.Used() != 0 {
		r.t.Errorf("%+v, %d bytes are taken from the device", s, r.dev.Used())
	}
	if n := len(r.dev.events); n > 0 {
		r.t.Errorf("%d events are left", n)
	}
	if n := r.dev.Calls(sim.AddressReserve) - r.dev.Calls(sim.AddressFree) - bareRanges(r.a); n > 0 {
		r.t.Errorf("%d ranges of addresses are left", n)
	}
}

// bareRanges returns how many ranges without memory PyTorch's allocator keeps for reuse.
func bareRanges(a Allocator) (n int64) {
	t, ok := a.(*Torch)
	if !ok {
		return 0
	}
	for _, p := range t.pools {
		for _, l := range p.lanes {
			for at := l.unmapped.first(); l.unmapped.valid(at); at = l.unmapped.next(at) {
				if b := t.store.at(l.unmapped.at(at).id); !b.split() {
					n++
				}
			}
		}
	}
	return n
}
