package driver

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"gm/internal/cuda"
)

// hostMemory returns memory that is not on Go's heap, filled with a byte.
func hostMemory(t testing.TB, size int, fill byte) []byte {
	t.Helper()
	m := got[[]byte](t)(syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON))
	t.Cleanup(func() { must(t, syscall.Munmap(m)) })
	for i := range m {
		m[i] = fill
	}
	return m
}

// registered returns host memory that is registered in pieces of a size.
func registered(t testing.TB, d *Device, size, piece int, fill byte) []byte {
	t.Helper()
	m := hostMemory(t, size, fill)
	for at := 0; at < size; at += piece {
		p := m[at:min(at+piece, size)]
		must(t, d.HostRegister(p))
		t.Cleanup(func() { must(t, d.HostUnregister(p)) })
	}
	return m
}

func TestHostRegister(t *testing.T) {
	d := open(t)
	m := hostMemory(t, 4*mib, 1)
	if err := d.HostUnregister(m); code(err) != 713 {
		t.Errorf("unregister what never was: %v", err)
	}
	must(t, d.HostRegister(m))
	if err := d.HostRegister(m); code(err) != 712 {
		t.Errorf("registered twice: %v", err)
	}
	must(t, d.HostUnregister(m))
	must(t, d.HostRegister(m[:2*mib]))
	must(t, d.HostRegister(m[2*mib:]))
	must(t, d.HostUnregister(m[2*mib:]))
	must(t, d.HostUnregister(m[:2*mib]))
}

// TestAsyncCopies copies to the device, within it and back, in one stream.
func TestAsyncCopies(t *testing.T) {
	d := open(t)
	s := got[cuda.Stream](t)(d.StreamCreate())
	m := registered(t, d, 2*mib, 2*mib, 7)
	p := got[cuda.Ptr](t)(d.MemAlloc(2 * mib))
	must(t, d.MemsetD32Async(p, 0, mib/2, s))
	must(t, d.MemcpyHtoDAsync(p, m[:mib], s))
	must(t, d.MemcpyDtoDAsync(p+mib, p, mib, s))
	must(t, d.MemcpyDtoHAsync(m[mib:], p+mib, s))
	must(t, d.StreamSynchronize(s))
	if !bytes.Equal(m, bytes.Repeat([]byte{7}, 2*mib)) {
		t.Error("what was copied there and back differs")
	}
	must(t, d.MemFree(p))
	must(t, d.StreamDestroy(s))
}

// TestRows copies each so many-th word of the device's memory.
func TestRows(t *testing.T) {
	const words, apart = 64, 12
	d := open(t)
	s := got[cuda.Stream](t)(d.StreamCreate())
	m := registered(t, d, 2*mib, 2*mib, 0)
	for i := range m {
		m[i] = byte(i * 7)
	}
	p := got[cuda.Ptr](t)(d.MemAlloc(2 * mib))
	must(t, d.MemcpyHtoDAsync(p, m[:mib], s))
	must(t, d.Memcpy2DAsync(p+mib, p+4, apart, 4, words, s))
	must(t, d.MemcpyDtoHAsync(m[mib:mib+4*words], p+mib, s))
	must(t, d.StreamSynchronize(s))
	for i := range 4 * words {
		if got, want := m[mib+i], m[4+i/4*apart+i%4]; got != want {
			t.Fatalf("byte %d of the rows is %d, not %d", i, got, want)
		}
	}
	if err := d.Memcpy2DAsync(p+mib, p, mib, 4, words, s); err == nil {
		t.Error("rows beyond the memory were copied")
	}
	must(t, d.MemFree(p))
	must(t, d.StreamDestroy(s))
}

// TestAcrossPieces has a copy cross from one registered piece into the next.
func TestAcrossPieces(t *testing.T) {
	d := open(t)
	s := got[cuda.Stream](t)(d.StreamCreate())
	m := registered(t, d, 4*mib, 2*mib, 7)
	p := got[cuda.Ptr](t)(d.MemAlloc(4 * mib))
	err := d.MemcpyHtoDAsync(p, m, s)
	if onGPU {
		t.Logf("a copy across two registrations: %v", err)
	} else if code(err) != codeInvalidValue {
		t.Errorf("a copy across two registrations: %v", err)
	}
	must(t, d.StreamSynchronize(s))
	must(t, d.MemFree(p))
	must(t, d.StreamDestroy(s))
}

func TestPCIBusID(t *testing.T) {
	id := got[string](t)(open(t).PCIBusID())
	if onGPU {
		t.Log(id)
	} else if id != "0000:1B:00.0" {
		t.Errorf("PCI bus id %q", id)
	}
}

func TestElapsed(t *testing.T) {
	d := open(t)
	s := got[cuda.Stream](t)(d.StreamCreate())
	p := got[cuda.Ptr](t)(d.MemAlloc(1 << 28))
	for range 3 {
		i := got[cuda.Interval](t)(d.IntervalBegin(s))
		must(t, d.MemsetD32Async(p, 7, 1<<26, s))
		must(t, d.IntervalEnd(i, s))
		if took, passed, err := d.Elapsed(i); passed || err != nil {
			t.Errorf("%v before the work is done, %v", took, err)
		}
		must(t, d.StreamSynchronize(s))
		if took, passed, err := d.Elapsed(i); !passed || took <= 0 || err != nil {
			t.Errorf("%v, %v, %v after the work is done", took, passed, err)
		}
		d.IntervalDestroy(i)
	}
	if n := len(d.intervals); n != 1 {
		t.Errorf("%d intervals were made for one at a time", n)
	}
	if _, _, err := d.Elapsed(cuda.Interval{Begin: 1, End: 1}); err == nil {
		t.Error("the time between events that are none")
	}
	must(t, d.MemFree(p))
	must(t, d.StreamDestroy(s))
}

// TestTransfers copies out of memory that a busy stream still writes, and back into memory that it still reads, in pieces.
func TestTransfers(t *testing.T) {
	d := open(t)
	const size, piece = 3 * 20 * mib, 20 * mib // not a multiple of what is copied at once
	m := registered(t, d, size, piece, 0)
	lanes := [2]cuda.Stream{got[cuda.Stream](t)(d.StreamCreate()), got[cuda.Stream](t)(d.StreamCreate())}
	s := got[cuda.Stream](t)(d.StreamCreate())
	p, q := got[cuda.Ptr](t)(d.MemAlloc(1<<28)), got[cuda.Ptr](t)(d.MemAlloc(size))
	for i := range uint32(4) {
		host := m[mib : size-mib]
		out := cuda.Transfer{
			Lane: lanes[0], After: s, Timed: i%2 == 0, Device: p + 1<<28 - size, Host: host, First: piece - mib, Piece: piece,
		}
		must(t, d.MemsetD32Async(p, i+5, 1<<26, s))
		left, took, err := d.Transfer(out)
		must(t, err)
		must(t, d.Follow(s, left))
		must(t, d.MemsetD32Async(p, 1, 1<<26, s)) // reads may still go on, but for the wait
		in := out
		in.Lane, in.In, in.Wait, in.Device = lanes[1], true, left, q
		ready, tookIn, err := d.Transfer(in)
		must(t, err)
		must(t, d.EventSynchronize(ready))
		if first, last := word(t, d, q), word(t, d, q+size-2*mib-4); first != i+5 || last != i+5 {
			t.Fatalf("round %d: words %d and %d", i, first, last)
		}
		if host[0] != byte(i+5) || host[len(host)-4] != byte(i+5) || m[0] != 0 || m[size-1] != 0 {
			t.Fatalf("round %d: the host has %d and %d, around it %d and %d", i, host[0], host[len(host)-4], m[0], m[size-1])
		}
		for _, interval := range []cuda.Interval{took, tookIn} {
			if out.Timed == (interval == cuda.Interval{}) {
				t.Errorf("timed: %v, with %+v", out.Timed, interval)
			}
			if out.Timed {
				if n, passed, err := d.Elapsed(interval); n <= 0 || !passed || err != nil {
					t.Errorf("it took %v, %v, %v", n, passed, err)
				}
			}
			d.IntervalDestroy(interval)
		}
		must(t, d.EventDestroy(left))
		must(t, d.EventDestroy(ready))
		must(t, d.StreamSynchronize(s))
	}
	if n := len(d.events); n > 3 {
		t.Errorf("%d events were made for three at a time", n)
	}
	must(t, d.MemFree(p))
	must(t, d.MemFree(q))
	for _, s := range []cuda.Stream{s, lanes[0], lanes[1]} {
		must(t, d.StreamDestroy(s))
	}
}

// transferOne makes a timed transfer of a page out of new memory.
func transferOne(t testing.TB, d *Device) error {
	s := got[cuda.Stream](t)(d.StreamCreate())
	m := registered(t, d, 4096, 4096, 0)
	p := got[cuda.Ptr](t)(d.MemAlloc(4096))
	done, took, err := d.Transfer(cuda.Transfer{Lane: s, Timed: true, Device: p, Host: m})
	if err == nil {
		must(t, d.EventSynchronize(done))
		must(t, d.EventDestroy(done))
		d.IntervalDestroy(took)
	}
	must(t, d.StreamDestroy(s))
	return errors.Join(err, d.MemFree(p))
}

// TestTransferFailures has each of the calls of a transfer fail: what it took is given back.
func TestTransferFailures(t *testing.T) {
	for rule, want := range map[string]string{
		"cuCtxPushCurrent:6=709":  "cuCtxPushCurrent: CUDA_ERROR_CONTEXT_IS_DESTROYED (709)",
		"cuEventCreate:1=2":       "cuEventCreate: CUDA_ERROR_OUT_OF_MEMORY (2)",
		"cuEventCreate:2=2":       "cuEventCreate: CUDA_ERROR_OUT_OF_MEMORY (2)",
		"cuEventCreate:3=2":       "cuEventCreate: CUDA_ERROR_OUT_OF_MEMORY (2)",
		"cuEventCreate:4=2":       "cuEventCreate: CUDA_ERROR_OUT_OF_MEMORY (2)",
		"cuStreamIsCapturing:1=1": "cuStreamIsCapturing: CUDA_ERROR_INVALID_VALUE (1)",
		"cuEventRecord:1=1":       "cuEventRecord: CUDA_ERROR_INVALID_VALUE (1)",
		"cuEventRecord:2=1":       "cuEventRecord: CUDA_ERROR_INVALID_VALUE (1)",
		"cuEventRecord:3=1":       "cuEventRecord: CUDA_ERROR_INVALID_VALUE (1)",
		"cuEventRecord:4=1":       "cuEventRecord: CUDA_ERROR_INVALID_VALUE (1)",
		"cuStreamWaitEvent:1=1":   "cuStreamWaitEvent: CUDA_ERROR_INVALID_VALUE (1)",
		"cuMemcpyDtoHAsync:1=1":   "cuMemcpyDtoHAsync: CUDA_ERROR_INVALID_VALUE (1)",
	} {
		t.Run(strings.ReplaceAll(strings.ReplaceAll(rule, ":", "-"), "=", "-"), func(t *testing.T) {
			if !alone(t, "GM_FAKE_FAIL="+rule) {
				return
			}
			d := open(t)
			if err := transferOne(t, d); err == nil || err.Error() != want {
				t.Errorf("gives %v, want %s", err, want)
			}
			must(t, transferOne(t, d))
			if events, intervals := len(d.events), len(d.intervals); events > 2 || intervals != 1 {
				t.Errorf("%d events and %d intervals are there for one transfer at a time", events, intervals)
			}
		})
	}
}

// TestTransferNothingAllocated: what a swapper calls for each tensor leaves nothing for the garbage collector.
func TestTransferNothingAllocated(t *testing.T) {
	d := open(t)
	s := got[cuda.Stream](t)(d.StreamCreate())
	m := registered(t, d, 4096, 4096, 0)
	p := got[cuda.Ptr](t)(d.MemAlloc(4096))
	n := testing.AllocsPerRun(100, func() {
		done, took, err := d.Transfer(cuda.Transfer{Lane: s, Timed: true, Device: p, Host: m})
		must(t, err)
		must(t, d.Follow(0, done))
		must(t, d.StreamSynchronize(s))
		_, _, err = d.Elapsed(took)
		must(t, err)
		d.IntervalDestroy(took)
		must(t, d.EventDestroy(done))
	})
	if n != 0 {
		t.Errorf("%v allocations for a transfer", n)
	}
	must(t, d.MemFree(p))
	must(t, d.StreamDestroy(s))
}

// BenchmarkTransfer copies a page out and has another stream wait for it.
func BenchmarkTransfer(b *testing.B) {
	d := open(b)
	s, user := got[cuda.Stream](b)(d.StreamCreate()), got[cuda.Stream](b)(d.StreamCreate())
	m := registered(b, d, 4096, 4096, 0)
	p := got[cuda.Ptr](b)(d.MemAlloc(4096))
	b.ReportAllocs()
	for b.Loop() {
		done, _, err := d.Transfer(cuda.Transfer{Lane: s, After: user, Device: p, Host: m})
		must(b, err)
		must(b, d.Follow(user, done))
		must(b, d.EventDestroy(done))
	}
}
