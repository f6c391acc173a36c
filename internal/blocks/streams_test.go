package blocks

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// streams is a device whose streams run behind the host, each at its own pace. It keeps track of which work is ordered before which. While
// a graph is captured it refuses events, waits and releases of memory.
type streams struct {
	*sim.Device
	t         testing.TB
	rng       *rand.Rand
	n         cuda.Stream // streams 0 to n-1
	stuck     cuda.Stream // a stream that proceeds only when it is waited for
	capturing bool
	submitted map[cuda.Stream]int64
	completed map[cuda.Stream]int64
	ordered   map[[2]cuda.Stream]int64 // {a, b}: what a gets from now on runs after this work of b
	events    map[cuda.Event]point
	uses      map[cuda.Ptr]map[cuda.Stream]int64 // by granule, the last work of each stream that used its addresses
	waits     []point                            // what a stream gets from there on is ordered behind others
	access    map[cuda.Ptr]bool                  // by granule
}

// point is a place in a stream, and what that is ordered behind.
type point struct {
	stream cuda.Stream
	work   int64
	behind map[cuda.Stream]int64
}

func newStreams(t testing.TB, rng *rand.Rand, n cuda.Stream, capacity int64) *streams {
	return &streams{
		Device: sim.New(capacity, sim.H200()), t: t, rng: rng, n: n, stuck: n - 1,
		submitted: map[cuda.Stream]int64{}, completed: map[cuda.Stream]int64{}, ordered: map[[2]cuda.Stream]int64{},
		events: map[cuda.Event]point{}, uses: map[cuda.Ptr]map[cuda.Stream]int64{}, access: map[cuda.Ptr]bool{},
	}
}

// work submits work to a stream that uses some addresses, and lets the streams run on.
func (d *streams) work(s cuda.Stream, p cuda.Ptr, size int64) point {
	d.submitted[s]++
	for g := p &^ (cuda.Granularity - 1); g < p+cuda.Ptr(size); g += cuda.Granularity {
		if !d.access[g] {
			d.t.Fatalf("stream %d uses %#x, where it has no access", s, g)
		}
		if d.uses[g] == nil {
			d.uses[g] = map[cuda.Stream]int64{}
		}
		d.uses[g][s] = d.submitted[s]
	}
	for s := range d.n {
		if s != d.stuck {
			d.complete(s, d.completed[s]+d.rng.Int64N(1+(d.submitted[s]-d.completed[s])/2))
		}
	}
	return point{stream: s, work: d.submitted[s]}
}

// complete lets a stream run up to some work, and others as far as that waits for them.
func (d *streams) complete(s cuda.Stream, work int64) {
	if d.completed[s] >= work {
		return
	}
	d.completed[s] = work
	for _, w := range d.waits {
		if w.stream == s && w.work < work {
			d.completeAll(w.behind)
		}
	}
}

func (d *streams) completeAll(work map[cuda.Stream]int64) {
	for s, n := range work {
		d.complete(s, n)
	}
}

func (d *streams) done(p point) bool { return d.completed[p.stream] >= p.work }

// after reports whether what stream s gets from now on runs after p.
func (d *streams) after(s cuda.Stream, p point) bool {
	return s == p.stream || d.done(p) || d.ordered[[2]cuda.Stream{s, p.stream}] >= p.work
}

// notCaptured ends the test if a graph is being captured.
func (d *streams) notCaptured(call string) {
	if d.capturing {
		d.t.Helper()
		d.t.Fatalf("%s while a graph is captured", call)
	}
}

func (d *streams) EventRecord(s cuda.Stream) (cuda.Event, error) {
	d.notCaptured("EventRecord")
	e, err := d.Device.EventRecord(s)
	d.events[e] = point{s, d.submitted[s], d.behind(s)}
	return e, err
}

// behind returns what work that a stream gets now is ordered behind.
func (d *streams) behind(s cuda.Stream) map[cuda.Stream]int64 {
	behind := map[cuda.Stream]int64{s: d.submitted[s]}
	for key, work := range d.ordered {
		if key[0] == s && key[1] != s {
			behind[key[1]] = work
		}
	}
	return behind
}

func (d *streams) EventQuery(e cuda.Event) (bool, error) {
	d.notCaptured("EventQuery")
	for s, work := range d.events[e].behind {
		if d.completed[s] < work {
			return false, nil
		}
	}
	return true, nil
}

func (d *streams) EventSynchronize(e cuda.Event) error {
	d.notCaptured("EventSynchronize")
	d.completeAll(d.events[e].behind)
	return nil
}

func (d *streams) EventDestroy(e cuda.Event) error {
	if _, ok := d.events[e]; !ok {
		d.t.Errorf("event %d is destroyed twice", e)
	}
	delete(d.events, e)
	return nil
}

func (d *streams) StreamSynchronize(s cuda.Stream) error {
	d.notCaptured("StreamSynchronize")
	d.completeAll(d.behind(s))
	return nil
}

func (d *streams) StreamWaitEvent(s cuda.Stream, e cuda.Event) error {
	d.notCaptured("StreamWaitEvent")
	at, ok := d.events[e]
	if !ok {
		d.t.Errorf("stream %d waits for event %d, which is destroyed", s, e)
	}
	d.waits = append(d.waits, point{s, d.submitted[s], at.behind})
	for other, work := range at.behind {
		key := [2]cuda.Stream{s, other}
		d.ordered[key] = max(d.ordered[key], work)
	}
	return nil
}

func (d *streams) MemAlloc(size int64) (cuda.Ptr, error) {
	p, err := d.Device.MemAlloc(size)
	if err == nil {
		d.allow(p, size)
	}
	return p, err
}

func (d *streams) SetAccess(p cuda.Ptr, size int64) error {
	d.allow(p, size)
	return d.Device.SetAccess(p, size)
}

func (d *streams) allow(p cuda.Ptr, size int64) {
	for g := p &^ (cuda.Granularity - 1); g < p+cuda.Ptr(size); g += cuda.Granularity {
		d.access[g] = true
	}
}

// MemFree waits for all work, as the driver does.
func (d *streams) MemFree(p cuda.Ptr) error {
	d.notCaptured("MemFree")
	d.completeAll(d.submitted)
	return d.Device.MemFree(p)
}

func (d *streams) Unmap(p cuda.Ptr, size int64) error {
	d.notCaptured("Unmap")
	for g := p; g < p+cuda.Ptr(size); g += cuda.Granularity {
		for s, work := range d.uses[g] {
			if d.completed[s] < work {
				d.t.Fatalf("%#x is unmapped while stream %d uses it", g, s)
			}
		}
		delete(d.uses, g)
		delete(d.access, g)
	}
	return d.Device.Unmap(p, size)
}
