package driver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/driver/bystander"
)

// TestThreads has goroutines make, fill, read and free memory at the same time.
func TestThreads(t *testing.T) {
	d := open(t)
	var group sync.WaitGroup
	for g := range uint32(8) {
		group.Go(func() {
			for i := range uint32(20) {
				if err := turn(d, 100*g+i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if len(d.sizes) != 0 {
		t.Errorf("%d handles are left", len(d.sizes))
	}
}

// turn maps new memory, fills it in a stream of its own, reads it back and gives all back.
func turn(d *Device, value uint32) (err error) {
	s, err := d.StreamCreate()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.StreamDestroy(s)) }()
	p, err := d.AddressReserve(2 * mib)
	if err != nil {
		return err
	}
	h, err := d.Create(2 * mib)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Map(p, h), d.SetAccess(p, 2*mib), d.MemsetD32Async(p, value, mib/2, s)); err != nil {
		return err
	}
	e, err := d.EventRecord(s)
	if err != nil {
		return err
	}
	var b [4]byte
	err = errors.Join(d.EventSynchronize(e), d.EventDestroy(e), d.MemcpyDtoH(b[:], p+2*mib-4),
		d.Unmap(p, 2*mib), d.Release(h), d.AddressFree(p, 2*mib))
	if read := binary.LittleEndian.Uint32(b[:]); err == nil && read != value {
		return fmt.Errorf("read %d, want %d", read, value)
	}
	return err
}

// TestContext calls with no context current, with that of another device, and with the device's own: each stays what it was.
func TestContext(t *testing.T) {
	d, other := pair(t)
	for name, context := range map[string]uintptr{"none": 0, "another": uintptr(other.c.context), "its own": uintptr(d.c.context)} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			must(t, bystander.SetCurrent(context))
			defer bystander.SetCurrent(0)
			for i := range uint32(70) {
				must(t, turn(d, i))
				free(t, d)
				if now, err := bystander.Current(); now != context || err != nil {
					t.Fatalf("context %#x is current, %v; want %#x", now, err, context)
				}
			}
		})
	}
}

// free makes calls that succeed and one that fails.
func free(t *testing.T, d *Device) {
	t.Helper()
	must(t, d.MemFree(got[cuda.Ptr](t)(d.MemAlloc(1))))
	if err := d.MemFree(1); err == nil {
		t.Fatal("what is no memory is freed")
	}
}

// TestCapture allocates, maps and asks for events while a stream is captured in the mode that forbids this to all threads.
func TestCapture(t *testing.T) {
	d := open(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, bystander.SetCurrent(uintptr(d.c.context)))
	defer bystander.SetCurrent(0)
	s, other := got[cuda.Stream](t)(d.StreamCreate()), got[cuda.Stream](t)(d.StreamCreate())
	must(t, bystander.BeginCapture(int64(s)))
	for stream, want := range map[cuda.Stream]bool{s: true, other: false, 0: false} {
		if capturing := got[bool](t)(d.Capturing(stream)); capturing != want {
			t.Errorf("stream %#x capturing: %v, want %v", stream, capturing, want)
		}
	}
	refusesCaptured(t, d, s, other)
	must(t, turn(d, 1))
	elsewhere := make(chan error)
	go func() { elsewhere <- turn(d, 2) }()
	must(t, <-elsewhere)
	must(t, d.MemFree(got[cuda.Ptr](t)(d.MemAlloc(1))))
	e := got[cuda.Event](t)(d.EventRecord(other))
	got[bool](t)(d.EventQuery(e))
	must(t, d.EventDestroy(e))
	must(t, bystander.EndCapture(int64(s)))
	must(t, d.StreamDestroy(s))
	must(t, d.StreamDestroy(other))
}

// refusesCaptured asks a stream that is captured for what would capture another one, too, or end the capture.
func refusesCaptured(t *testing.T, d *Device, s, other cuda.Stream) {
	t.Helper()
	m := registered(t, d, 4096, 4096, 0)
	p := got[cuda.Ptr](t)(d.MemAlloc(4096))
	if _, _, err := d.Transfer(cuda.Transfer{Lane: other, After: s, Device: p, Host: m}); !errors.Is(err, cuda.ErrCapturing) {
		t.Errorf("a transfer behind a stream that is captured: %v", err)
	}
	done, _, err := d.Transfer(cuda.Transfer{Lane: other, After: other, Device: p, Host: m})
	must(t, err)
	if err := d.Follow(s, done); !errors.Is(err, cuda.ErrCapturing) {
		t.Errorf("a stream that is captured waits for a transfer: %v", err)
	}
	must(t, d.EventSynchronize(done))
	must(t, d.EventDestroy(done))
	must(t, d.MemFree(p))
}

// BenchmarkEvent is what an allocator adds to a free that waits for a stream, and to its first look whether it has passed.
func BenchmarkEvent(b *testing.B) {
	d := open(b)
	s := got[cuda.Stream](b)(d.StreamCreate())
	b.ReportAllocs()
	for b.Loop() {
		e := got[cuda.Event](b)(d.EventRecord(s))
		got[bool](b)(d.EventQuery(e))
		must(b, d.EventDestroy(e))
	}
}

// BenchmarkEventQuery asks for an event that has passed.
func BenchmarkEventQuery(b *testing.B) {
	d := open(b)
	e := got[cuda.Event](b)(d.EventRecord(0))
	must(b, d.Synchronize())
	for b.Loop() {
		got[bool](b)(d.EventQuery(e))
	}
}
