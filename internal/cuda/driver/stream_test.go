package driver

import (
	"encoding/binary"
	"testing"

	"gm/internal/cuda"
)

// word reads the word at p.
func word(t testing.TB, d *Device, p cuda.Ptr) uint32 {
	t.Helper()
	var b [4]byte
	must(t, d.MemcpyDtoH(b[:], p))
	return binary.LittleEndian.Uint32(b[:])
}

// TestOrder passes memory from stream to stream behind events.
func TestOrder(t *testing.T) {
	d := open(t)
	a, b := got[cuda.Stream](t)(d.StreamCreate()), got[cuda.Stream](t)(d.StreamCreate())
	p := got[cuda.Ptr](t)(d.MemAlloc(8 * mib))
	for i := range uint32(50) {
		must(t, d.MemsetD32Async(p, 2*i, 2*mib, a))
		e := got[cuda.Event](t)(d.EventRecord(a))
		must(t, d.StreamWaitEvent(b, e))
		must(t, d.MemsetD32Async(p+8*mib-4, 2*i+1, 1, b))
		must(t, d.EventDestroy(e))
		done := got[cuda.Event](t)(d.EventRecord(b))
		must(t, d.StreamWaitEvent(a, done))
		must(t, d.EventSynchronize(done))
		if passed := got[bool](t)(d.EventQuery(done)); !passed {
			t.Fatal("an event that was waited for has not passed")
		}
		if first, last := word(t, d, p), word(t, d, p+8*mib-4); first != 2*i || last != 2*i+1 {
			t.Fatalf("round %d: words %d and %d", i, first, last)
		}
		must(t, d.EventDestroy(done))
	}
	if n := len(d.events); n == 0 || n > 2 {
		t.Errorf("%d events were made for two at a time", n)
	}
	must(t, d.StreamSynchronize(a))
	must(t, d.Synchronize())
	must(t, d.StreamDestroy(a))
	must(t, d.StreamDestroy(b))
	must(t, d.MemFree(p))
}

// TestPending asks for an event behind work that takes its time.
func TestPending(t *testing.T) {
	d := open(t)
	s := got[cuda.Stream](t)(d.StreamCreate())
	p := got[cuda.Ptr](t)(d.MemAlloc(1 << 28))
	must(t, d.MemsetD32Async(p, 7, 1<<26, s))
	e := got[cuda.Event](t)(d.EventRecord(s))
	if got[bool](t)(d.EventQuery(e)) {
		t.Error("an event has passed before the work it is behind")
	}
	must(t, d.EventSynchronize(e))
	if last := word(t, d, p+1<<28-4); last != 7 {
		t.Errorf("the last word is %d", last)
	}
	must(t, d.EventDestroy(e))
	must(t, d.StreamDestroy(s))
	must(t, d.MemFree(p))
}

// TestNothingAllocated: what an allocator calls for each request leaves nothing for the garbage collector.
func TestNothingAllocated(t *testing.T) {
	d := open(t)
	s := got[cuda.Stream](t)(d.StreamCreate())
	n := testing.AllocsPerRun(100, func() {
		e, err := d.EventRecord(s)
		must(t, err)
		must(t, d.StreamWaitEvent(0, e))
		_, err = d.EventQuery(e)
		must(t, err)
		_, err = d.Capturing(s)
		must(t, err)
		must(t, d.EventDestroy(e))
	})
	if n != 0 {
		t.Errorf("%v allocations for an event", n)
	}
	n = testing.AllocsPerRun(100, func() {
		p, err := d.AddressReserve(2 * mib)
		must(t, err)
		h, err := d.Create(2 * mib)
		must(t, err)
		must(t, d.Map(p, h))
		must(t, d.SetAccess(p, 2*mib))
		must(t, d.Unmap(p, 2*mib))
		must(t, d.Release(h))
		must(t, d.AddressFree(p, 2*mib))
	})
	if n != 0 {
		t.Errorf("%v allocations for a mapping", n)
	}
}
