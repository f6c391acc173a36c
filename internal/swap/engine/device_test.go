package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
	"unsafe"

	"gm/internal/cuda"
)

var errInjected = errors.New("injected")

// point is what an event names: a place in a stream.
type point struct {
	passed bool
	at     time.Duration
}

// op is work in a stream: it begins when what it waits for has passed.
type op struct {
	wait *point
	run  func()
	mark *point
}

// device is a GPU with real contents whose streams run in any order that events allow, one operation at a time, when step is called.
type device struct {
	t       testing.TB
	rng     *rand.Rand
	memory  []byte // of the device, from base on
	streams map[cuda.Stream][]op
	order   []cuda.Stream // the keys, as they were made
	last    cuda.Stream
	events  map[cuda.Event]*point
	spare   []cuda.Event // destroyed, to be used again
	made    cuda.Event
	pinned  [][]byte
	now     time.Duration
	copies  int             // that are queued
	fail    func(call) bool // says whether a call fails
}

// base is the address of the device's first byte.
const base = 0x10000

type call int

const (
	streamCreate call = iota
	streamDestroy
	streamSynchronize
	hostRegister
	hostUnregister
	transferEarly // before it has queued anything
	transferLate  // when all is queued
	follow
	eventRecord
	synchronize
	capturing
	eventQuery
	eventDestroy
	elapsed
	calls
)

func newDevice(t testing.TB, rng *rand.Rand, size int64) *device {
	return &device{
		t: t, rng: rng, memory: make([]byte, size), streams: map[cuda.Stream][]op{}, events: map[cuda.Event]*point{},
		last: 0x100, fail: func(call) bool { return false },
	}
}

// bytes returns memory of the device.
func (d *device) bytes(p cuda.Ptr, n int64) []byte { return d.memory[int64(p)-base:][:n] }

// put queues work.
func (d *device) put(s cuda.Stream, o op) {
	if _, ok := d.streams[s]; !ok {
		d.t.Fatalf("stream %#x is none", s)
	}
	d.streams[s] = append(d.streams[s], o)
}

// step runs an operation of one of the streams that can go on. It says whether there was one.
func (d *device) step() bool {
	var ready []cuda.Stream
	for _, s := range d.order {
		if queue := d.streams[s]; len(queue) > 0 && (queue[0].wait == nil || queue[0].wait.passed) {
			ready = append(ready, s)
		}
	}
	if len(ready) == 0 {
		for s, queue := range d.streams {
			if len(queue) > 0 {
				d.t.Fatalf("stream %#x can never go on", s)
			}
		}
		return false
	}
	s := ready[d.rng.IntN(len(ready))]
	o := d.streams[s][0]
	d.streams[s] = d.streams[s][1:]
	d.now += time.Microsecond
	if o.run != nil {
		o.run()
	}
	if o.mark != nil {
		o.mark.passed, o.mark.at = true, d.now
	}
	return true
}

// drain runs until a stream is done.
func (d *device) drain(s cuda.Stream) {
	for len(d.streams[s]) > 0 {
		d.step()
	}
}

// record returns a new event behind what a stream holds now.
func (d *device) record(s cuda.Stream) cuda.Event {
	var e cuda.Event
	if n := len(d.spare); n > 0 {
		i := d.rng.IntN(n)
		e, d.spare[i] = d.spare[i], d.spare[n-1]
		d.spare = d.spare[:n-1]
	} else {
		d.made++
		e = d.made
	}
	d.events[e] = &point{}
	d.put(s, op{mark: d.events[e]})
	return e
}

func (d *device) point(e cuda.Event) *point {
	p, ok := d.events[e]
	if !ok {
		d.t.Fatalf("event %d is none", e)
	}
	return p
}

func (d *device) StreamCreate() (cuda.Stream, error) {
	if d.fail(streamCreate) {
		return 0, errInjected
	}
	d.last++
	d.streams[d.last] = nil
	d.order = append(d.order, d.last)
	return d.last, nil
}

func (d *device) StreamDestroy(s cuda.Stream) error {
	if d.fail(streamDestroy) {
		return errInjected
	}
	d.drain(s)
	delete(d.streams, s)
	d.order = slices.DeleteFunc(d.order, func(o cuda.Stream) bool { return o == s })
	return nil
}

func (d *device) StreamSynchronize(s cuda.Stream) error {
	if d.fail(streamSynchronize) {
		return errInjected
	}
	d.drain(s)
	return nil
}

// pieceOf returns the piece of pinned memory that b is in, -1 if it is in none or in more than one.
func (d *device) pieceOf(b []byte) int {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return slices.IndexFunc(d.pinned, func(p []byte) bool {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
		return at >= start && at+uintptr(len(b)) <= start+uintptr(len(p))
	})
}

func (d *device) HostRegister(memory []byte) error {
	if d.fail(hostRegister) {
		return errInjected
	}
	if d.pieceOf(memory[:1]) >= 0 || d.pieceOf(memory[len(memory)-1:]) >= 0 {
		d.t.Fatal("registered twice")
	}
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(memory))); (int(at)|len(memory))%os.Getpagesize() != 0 {
		d.t.Fatalf("%d bytes at %#x are no whole pages of %d", len(memory), at, os.Getpagesize())
	}
	d.pinned = append(d.pinned, memory)
	return nil
}

func (d *device) HostUnregister(memory []byte) error {
	if d.fail(hostUnregister) {
		return errInjected
	}
	i := d.pieceOf(memory)
	if i < 0 || len(d.pinned[i]) != len(memory) || d.copies > 0 {
		d.t.Fatalf("%d bytes that are unregistered are piece %d, with %d copies going on", len(memory), i, d.copies)
	}
	d.pinned = slices.Delete(d.pinned, i, i+1)
	return nil
}

// copy queues a copy in two halves, between which others run.
func (d *device) copy(t cuda.Transfer, at, n int64) {
	host, gpu := t.Host[at:at+n], d.bytes(t.Device+cuda.Ptr(at), n)
	if d.pieceOf(host) < 0 {
		d.t.Fatalf("%d bytes of the host are not pinned as one", n)
	}
	d.copies++
	half := n / 2
	move := func(from, to int64) {
		if t.In {
			copy(gpu[from:to], host[from:to])
		} else {
			copy(host[from:to], gpu[from:to])
		}
	}
	d.put(t.Lane, op{run: func() { move(0, half) }})
	d.put(t.Lane, op{run: func() { move(half, n); d.copies-- }})
}

func (d *device) Transfer(t cuda.Transfer) (done cuda.Event, took cuda.Interval, err error) {
	if d.fail(transferEarly) {
		return 0, took, errInjected
	}
	order := d.record(t.After)
	d.put(t.Lane, op{wait: d.point(order)})
	if t.Wait != 0 {
		d.put(t.Lane, op{wait: d.point(t.Wait)})
	}
	d.forget(order)
	if t.Timed {
		took.Begin = d.record(t.Lane)
	}
	size := int64(len(t.Host))
	for at, n := int64(0), min(t.First, size); at < size; at, n = at+n, min(t.Piece, size-at-n) {
		d.copy(t, at, n)
	}
	if t.Timed {
		took.End = d.record(t.Lane)
	}
	if d.fail(transferLate) {
		d.drain(t.Lane)
		d.IntervalDestroy(took)
		return 0, cuda.Interval{}, errInjected
	}
	return d.record(t.Lane), took, nil
}

func (d *device) Follow(s cuda.Stream, e cuda.Event) error {
	if d.fail(follow) {
		return errInjected
	}
	d.put(s, op{wait: d.point(e)})
	return nil
}

func (d *device) EventRecord(s cuda.Stream) (cuda.Event, error) {
	if d.fail(eventRecord) {
		return 0, errInjected
	}
	return d.record(s), nil
}

func (d *device) Synchronize() error {
	if d.fail(synchronize) {
		return errInjected
	}
	for d.step() {
	}
	return nil
}

// Capturing says that a stream is captured where the call is to fail.
func (d *device) Capturing(cuda.Stream) (bool, error) { return d.fail(capturing), nil }

func (d *device) EventQuery(e cuda.Event) (bool, error) {
	if d.fail(eventQuery) {
		return false, errInjected
	}
	return d.point(e).passed, nil
}

// forget gives an event up, which keeps what waits for it.
func (d *device) forget(e cuda.Event) {
	d.point(e)
	delete(d.events, e)
	d.spare = append(d.spare, e)
}

func (d *device) EventDestroy(e cuda.Event) error {
	d.forget(e)
	if d.fail(eventDestroy) {
		return errInjected
	}
	return nil
}

func (d *device) Elapsed(i cuda.Interval) (time.Duration, bool, error) {
	if d.fail(elapsed) {
		return 0, false, errInjected
	}
	begin, end := d.point(i.Begin), d.point(i.End)
	if !end.passed {
		return 0, false, nil
	}
	return end.at - begin.at, true, nil
}

func (d *device) IntervalDestroy(i cuda.Interval) {
	if i != (cuda.Interval{}) {
		d.forget(i.Begin)
		d.forget(i.End)
	}
}

// holds says what of an engine's the device still has.
func (d *device) holds() string {
	return fmt.Sprintf("%d streams, %d events, %d pieces of the host, %d copies", len(d.streams), len(d.events), len(d.pinned), d.copies)
}

const holdsNothing = "0 streams, 0 events, 0 pieces of the host, 0 copies"
