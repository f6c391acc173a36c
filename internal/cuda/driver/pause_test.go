package driver

import (
	"sync/atomic"
	"testing"
	"time"

	"gm/internal/cuda"
)

// outgoing is memory of a device, a number of parts of a copy, that goes to the host in a stream of its own.
type outgoing struct {
	d    *Device
	lane cuda.Stream
	host []byte
	from cuda.Ptr
}

func newOutgoing(t *testing.T, d *Device, parts int) *outgoing {
	size := parts * pausePart
	o := &outgoing{d: d, lane: got[cuda.Stream](t)(d.StreamCreate()), host: registered(t, d, size, size, 0), from: got[cuda.Ptr](t)(d.MemAlloc(int64(size)))}
	t.Cleanup(func() {
		must(t, d.StreamSynchronize(o.lane))
		must(t, d.MemFree(o.from))
		must(t, d.StreamDestroy(o.lane))
	})
	return o
}

// start fills the memory, and queues the copy.
func (o *outgoing) start(t *testing.T, value uint32) cuda.Event {
	must(t, o.d.MemsetD32Async(o.from, value, int64(len(o.host)/4), o.lane))
	done, _, err := o.d.Transfer(cuda.Transfer{Lane: o.lane, Device: o.from, Host: o.host})
	must(t, err)
	return done
}

func (o *outgoing) has(t *testing.T, value byte) {
	t.Helper()
	if first, last := o.host[0], o.host[len(o.host)-4]; first != value || last != value {
		t.Fatalf("the host has %d and %d, not %d", first, last, value)
	}
}

// TestPause has a copy wait while another device of the same GPU sets access, which takes a while.
func TestPause(t *testing.T) {
	if !alone(t, "GM_FAKE_DELAY=cuMemSetAccess=500ms") {
		return
	}
	l := load(t)
	d, other := got[*Device](t)(l.Open(0)), got[*Device](t)(l.Open(0))
	t.Cleanup(func() { must(t, d.Close()) })
	d.pauses.longest = time.Hour
	o, h := newOutgoing(t, d, 1), got[cuda.Handle](t)(other.Create(2*mib))
	p := mapped(t, other, 2*mib, h)
	for value := range uint32(3) {
		done := o.start(t, value+1) // the first one makes the word
		must(t, d.EventSynchronize(done))
		o.has(t, byte(value+1))
		set := make(chan error)
		go func() { set <- other.SetAccess(p, 2*mib) }()
		for begin := time.Now(); atomic.LoadUint32(d.pauses.word) == 0; time.Sleep(time.Millisecond) {
			if time.Since(begin) > 10*time.Second {
				t.Fatal("copies do not pause")
			}
		}
		late := o.start(t, value+11)
		time.Sleep(20 * time.Millisecond)
		if passed := got[bool](t)(d.EventQuery(late)); passed || o.host[0] != byte(value+1) {
			t.Fatalf("the copy has passed: %v, and the host has %d", passed, o.host[0])
		}
		must(t, <-set)
		must(t, d.EventSynchronize(late))
		o.has(t, byte(value+11))
		must(t, d.EventDestroy(done))
		must(t, d.EventDestroy(late))
	}
	must(t, other.Unmap(p, 2*mib))
	must(t, other.Release(h))
	must(t, other.AddressFree(p, 2*mib))
	must(t, other.Close())
}

// TestPauseWithin has a copy that runs stop after a part.
func TestPauseWithin(t *testing.T) {
	if !alone(t, "GM_FAKE_WORK=cuMemcpyDtoHAsync=200ms") {
		return
	}
	d := open(t)
	d.pauses.longest = time.Hour
	o := newOutgoing(t, d, 4)
	done := o.start(t, 7)
	for o.host[pausePart-4] == 0 {
		time.Sleep(time.Millisecond)
	}
	begun := d.pauses.begin()
	time.Sleep(900 * time.Millisecond)
	if o.host[len(o.host)-4] != 0 || !begun {
		t.Errorf("the copy has ended, begun is %v", begun)
	}
	d.pauses.end(begun)
	must(t, d.EventSynchronize(done))
	o.has(t, 7)
	must(t, d.EventDestroy(done))
}

// TestPauseExpires has calls wait for a copy that pauses for them: it goes on, and after some such calls none pauses.
func TestPauseExpires(t *testing.T) {
	d := open(t)
	o := newOutgoing(t, d, 1)
	d.pauses.longest = 10 * time.Millisecond
	d.pauses.use(d)
	d.pauses.done()
	for n := range mostExpired {
		begun, start := d.pauses.begin(), time.Now()
		done := o.start(t, uint32(n+1))
		must(t, d.EventSynchronize(done))
		o.has(t, byte(n+1))
		if took := time.Since(start); !begun || took < d.pauses.longest {
			t.Errorf("call %d: begun is %v, and the copy took %v", n, begun, took)
		}
		d.pauses.end(begun)
		must(t, d.EventDestroy(done))
	}
	if d.pauses.begin() {
		t.Error("copies still pause")
	}
	d.pauses.end(false)
}

// TestPauseCounts has two calls at a time, one of them for longer, and none where there are no copies.
func TestPauseCounts(t *testing.T) {
	d := open(t)
	if d.pauses.begin() {
		t.Error("copies pause that never were")
	}
	d.pauses.end(false)
	d.pauses.longest = time.Hour
	d.pauses.use(d)
	d.pauses.done()
	a, b := d.pauses.begin(), d.pauses.begin()
	d.pauses.end(a)
	if *d.pauses.word != 1 {
		t.Error("copies go on while one call is left")
	}
	d.pauses.end(b)
	if *d.pauses.word != 0 {
		t.Error("copies still pause")
	}
}

// TestPauseRefused has no word, or a wait that fails: copies go on while calls do.
func TestPauseRefused(t *testing.T) {
	for _, rule := range []string{"cuMemHostAlloc:1=2", "cuStreamWaitValue32:1+=801"} {
		t.Run(rule[:4]+rule[len(rule)-1:], func(t *testing.T) {
			if !alone(t, "GM_FAKE_FAIL="+rule) {
				return
			}
			d := open(t)
			o := newOutgoing(t, d, 2)
			d.pauses.use(d)
			d.pauses.done()
			begun := d.pauses.begin()
			done := o.start(t, 7)
			must(t, d.EventSynchronize(done))
			o.has(t, 7)
			d.pauses.end(begun)
			must(t, d.EventDestroy(done))
		})
	}
}
