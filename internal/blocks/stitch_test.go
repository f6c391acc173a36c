package blocks

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// streams is a device whose streams run behind the host, each at its own pace. It keeps account of what work is ordered before what.
type streams struct {
	*sim.Device
	t         *testing.T
	rng       *rand.Rand
	submitted map[cuda.Stream]int64
	completed map[cuda.Stream]int64
	ordered   map[[2]cuda.Stream]int64 // {a, b}: what a gets from now on runs after so much of b
	events    map[cuda.Event]point
	uses      map[cuda.Ptr]point // by granule, the last work that used its addresses
	waits     []point            // what a stream gets from there on is ordered behind others
}

// point is a place in a stream, and what that is ordered behind.
type point struct {
	stream cuda.Stream
	work   int64
	behind map[cuda.Stream]int64
}

func newStreams(t *testing.T, rng *rand.Rand, capacity int64) *streams {
	return &streams{
		Device: sim.New(capacity, sim.H200()), t: t, rng: rng, submitted: map[cuda.Stream]int64{}, completed: map[cuda.Stream]int64{},
		ordered: map[[2]cuda.Stream]int64{}, events: map[cuda.Event]point{}, uses: map[cuda.Ptr]point{},
	}
}

// work submits work to a stream that uses some addresses, and lets the streams run on.
func (d *streams) work(s cuda.Stream, p cuda.Ptr, size int64) point {
	d.submitted[s]++
	at := point{stream: s, work: d.submitted[s]}
	for g := p &^ (cuda.Granularity - 1); g < p+cuda.Ptr(size); g += cuda.Granularity {
		d.uses[g] = at
	}
	for s := range cuda.Stream(4) {
		d.complete(s, d.completed[s]+d.rng.Int64N(1+(d.submitted[s]-d.completed[s])/2))
	}
	return at
}

// complete lets a stream run up to some work, and others as far as that waits for them.
func (d *streams) complete(s cuda.Stream, work int64) {
	if d.completed[s] >= work {
		return
	}
	d.completed[s] = work
	for _, w := range d.waits {
		if w.stream == s && w.work < work {
			for other, needed := range w.behind {
				d.complete(other, needed)
			}
		}
	}
}

func (d *streams) done(p point) bool { return d.completed[p.stream] >= p.work }

// after says whether what stream s gets from now on runs after p.
func (d *streams) after(s cuda.Stream, p point) bool {
	return s == p.stream || d.done(p) || d.ordered[[2]cuda.Stream{s, p.stream}] >= p.work
}

func (d *streams) EventRecord(s cuda.Stream) (cuda.Event, error) {
	e, err := d.Device.EventRecord(s)
	behind := map[cuda.Stream]int64{}
	for key, work := range d.ordered {
		if key[0] == s {
			behind[key[1]] = work
		}
	}
	behind[s] = d.submitted[s]
	d.events[e] = point{s, d.submitted[s], behind}
	return e, err
}

func (d *streams) EventQuery(e cuda.Event) (bool, error) {
	for s, work := range d.events[e].behind {
		if d.completed[s] < work {
			return false, nil
		}
	}
	return true, nil
}

func (d *streams) EventSynchronize(e cuda.Event) error {
	return d.StreamSynchronize(d.events[e].stream)
}

func (d *streams) EventDestroy(e cuda.Event) error {
	if _, ok := d.events[e]; !ok {
		d.t.Error("an event is destroyed twice")
	}
	delete(d.events, e)
	return nil
}

func (d *streams) StreamSynchronize(s cuda.Stream) error {
	d.complete(s, d.submitted[s])
	for key, work := range d.ordered {
		if key[0] == s {
			d.complete(key[1], work)
		}
	}
	return nil
}

func (d *streams) StreamWaitEvent(s cuda.Stream, e cuda.Event) error {
	d.waits = append(d.waits, point{s, d.submitted[s], d.events[e].behind})
	for other, work := range d.events[e].behind {
		key := [2]cuda.Stream{s, other}
		d.ordered[key] = max(d.ordered[key], work)
	}
	return nil
}

func (d *streams) Unmap(p cuda.Ptr, size int64) error {
	for g := p; g < p+cuda.Ptr(size); g += cuda.Granularity {
		if use, ok := d.uses[g]; ok && !d.done(use) {
			d.t.Fatalf("%#x is unmapped while stream %d uses it", g, use.stream)
		}
		delete(d.uses, g)
	}
	return d.Device.Unmap(p, size)
}

// used is a block that is or was in use.
type used struct {
	ptr     cuda.Ptr
	size    int64
	stream  cuda.Stream
	extents []sim.Extent
	last    []point // the last work in each stream that used it
}

// TestStitchAcrossStreams runs random requests on streams that run behind, and looks whether memory passes on only when that is safe.
func TestStitchAcrossStreams(t *testing.T) {
	ooms := 0
	for seed := range uint64(8) {
		for name, conf := range map[string]StitchConf{
			"default": DefaultStitchConf(),
			"tight":   {PieceMin: 2 << 20, PieceMax: 16 << 20, Pieces: 32, Parts: 4, Aliases: 1},
		} {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 7))
				dev := newStreams(t, rng, 500<<20)
				a, err := NewStitch(dev, conf)
				if err != nil {
					t.Fatal(err)
				}
				r := crossing{t: t, rng: rng, dev: dev, a: a}
				for range 6000 {
					r.step()
				}
				if len(dev.waits) == 0 || dev.Calls(sim.Unmap) == 0 || a.Stitches() == 0 {
					t.Errorf("%d waits, %d stitches, %d unmaps: the test is too easy", len(dev.waits), a.Stitches(), dev.Calls(sim.Unmap))
				}
				ooms += r.ooms
				r.finish()
			})
		}
	}
	if ooms == 0 {
		t.Error("the device was never full: the test is too easy")
	}
}

// crossing drives an allocator.
type crossing struct {
	t    *testing.T
	rng  *rand.Rand
	dev  *streams
	a    *Stitch
	live []used
	past []used // what was freed: its memory may be reused behind its last work
	ooms int
}

func (r *crossing) step() {
	switch x := r.rng.IntN(1000); {
	case x < 480 && len(r.live) < 150:
		r.malloc()
	case x < 990:
		r.free()
	case x < 995:
		if err := r.a.Empty(); err != nil {
			r.t.Fatal(err)
		}
	default:
		r.phase()
	}
	if s := r.a.Stats(); s.Reserved != r.dev.Used() || s.Allocated > s.Reserved {
		r.t.Fatalf("%+v, but %d bytes are taken from the device", s, r.dev.Used())
	}
}

// phase frees what one stream holds, so that others can have it.
func (r *crossing) phase() {
	s := cuda.Stream(r.rng.IntN(3))
	for i := len(r.live) - 1; i >= 0; i-- {
		if r.live[i].stream == s {
			r.drop(i)
		}
	}
}

func (r *crossing) malloc() {
	size := int64(1<<20) + 1 + r.rng.Int64N(1<<(21+r.rng.IntN(7)))
	stream := cuda.Stream(r.rng.IntN(3))
	p, err := r.a.Malloc(size, stream, 0)
	var oom *OOMError
	if errors.As(err, &oom) {
		r.ooms++
		return
	} else if err != nil {
		r.t.Fatal(err)
	}
	extents, err := r.dev.Extents(p, size)
	if err != nil {
		r.t.Fatal(err)
	}
	b := used{p, size, stream, extents, nil}
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

func (r *crossing) free() {
	if len(r.live) > 0 {
		r.drop(r.rng.IntN(len(r.live)))
	}
}

func (r *crossing) drop(i int) {
	b := r.live[i]
	r.live[i] = r.live[len(r.live)-1]
	r.live = r.live[:len(r.live)-1]
	b.last = append(b.last, r.dev.work(b.stream, b.ptr, b.size))
	if r.rng.IntN(5) == 0 {
		other := cuda.Stream(r.rng.IntN(4))
		b.last = append(b.last, r.dev.work(other, b.ptr, b.size))
		if err := r.a.RecordStream(b.ptr, other); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.a.Free(b.ptr); err != nil {
		r.t.Fatal(err)
	}
	r.past = append(r.past, b)
}

// finish frees everything and expects nothing to be left.
func (r *crossing) finish() {
	for len(r.live) > 0 {
		r.drop(0)
	}
	if err := r.a.Empty(); err != nil {
		r.t.Fatal(err)
	}
	if s := r.a.Stats(); s.Allocated != 0 || s.Reserved != 0 || r.dev.Used() != 0 {
		r.t.Errorf("%+v, %d bytes are taken from the device", s, r.dev.Used())
	}
	if n := len(r.dev.events); n > 0 {
		r.t.Errorf("%d events are left", n)
	}
}
