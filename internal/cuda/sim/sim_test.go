package sim

import (
	"errors"
	"testing"
	"time"

	"gm/internal/cuda"
)

const mib = 1 << 20

func TestCurve(t *testing.T) {
	c := Curve{{2 * mib, 10}, {4 * mib, 30}, {8 * mib, 40}}
	for size, want := range map[int64]time.Duration{0: 10, 2 * mib: 10, 3 * mib: 20, 4 * mib: 30, 6 * mib: 35, 8 * mib: 40, 12 * mib: 50} {
		if got := c.At(size); got != want {
			t.Errorf("At(%d MiB) = %d, want %d", size/mib, got, want)
		}
	}
	if got := (Curve{{2 * mib, 7}}).At(100 * mib); got != 7 {
		t.Errorf("a curve of one point: %d, want 7", got)
	}
	if got := (Curve{}).At(mib); got != 0 {
		t.Errorf("a curve of no point: %d, want 0", got)
	}
}

// must returns a function that fails the test on an error.
func must(t *testing.T) func(error) {
	return func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestCapacity(t *testing.T) {
	d := New(10*mib, H200())
	p, err := d.MemAlloc(3 * mib)
	must(t)(err)
	if d.Used() != 4*mib {
		t.Errorf("3 MiB take %d bytes, want 4 MiB", d.Used())
	}
	h, err := d.Create(6 * mib)
	must(t)(err)
	if _, err := d.MemAlloc(1); !errors.Is(err, cuda.ErrOutOfMemory) {
		t.Errorf("alloc on a full device: %v", err)
	}
	if _, err := d.Create(2 * mib); !errors.Is(err, cuda.ErrOutOfMemory) {
		t.Errorf("create on a full device: %v", err)
	}
	must(t)(d.MemFree(p))
	must(t)(d.Release(h))
	if free, total, _ := d.MemInfo(); free != 10*mib || total != 10*mib {
		t.Errorf("%d of %d bytes free after all was given back", free, total)
	}
}

// TestAliases maps one handle at two addresses: its memory lives until the last of handle and mappings is gone.
func TestAliases(t *testing.T) {
	d := New(0, H200())
	must := must(t)
	h, err := d.Create(4 * mib)
	must(err)
	a, err := d.AddressReserve(8 * mib)
	must(err)
	must(d.Map(a, h))
	must(d.Map(a+4*mib, h))
	must(d.SetAccess(a, 8*mib))
	if d.Calls(SetAccess) != 2 {
		t.Errorf("access to two handles counts %d", d.Calls(SetAccess))
	}
	first, err := d.Extents(a+mib, 2*mib)
	must(err)
	second, err := d.Extents(a+5*mib, mib)
	must(err)
	if !first[0].Overlaps(second[0]) {
		t.Error("the same memory at two addresses does not overlap")
	}
	other, err := d.Create(8 * mib)
	must(err)
	for what, err := range map[string]error{
		"map over a mapping": d.Map(a, h), "map over its second half": d.Map(a+2*mib, h), "map out of the range": d.Map(a+8*mib, h),
		"map a larger one": d.Map(a, other), "unmap half of a handle": d.Unmap(a, 2*mib), "free a range in use": d.AddressFree(a, 8*mib),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	must(d.Release(other))
	must(d.Unmap(a, 4*mib))
	must(d.Release(h))
	if d.Used() != 4*mib {
		t.Errorf("%d bytes used while one mapping is left", d.Used())
	}
	must(d.Unmap(a+4*mib, 4*mib))
	if d.Used() != 0 {
		t.Errorf("%d bytes used after the last mapping", d.Used())
	}
	must(d.AddressFree(a, 8*mib))
	for what, err := range map[string]error{
		"release twice": d.Release(h), "unmap nothing": d.Unmap(a, 2*mib), "free a range twice": d.AddressFree(a, 8*mib),
		"free nothing": d.MemFree(a), "access to nothing": d.SetAccess(a, 2*mib),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestClearing takes memory that nobody had, and memory that was given back, at once and after the job has worked.
func TestClearing(t *testing.T) {
	must := must(t)
	d := New(0, CostTable{Clear: {{2 * mib, 10}, {4 * mib, 20}}, MemFree: {{0, 1}}, Release: {{0, 1}}})
	waits := func(want time.Duration, take func()) {
		t.Helper()
		before := d.Elapsed()
		take()
		if got := d.Elapsed() - before; got != want {
			t.Errorf("waits %d, want %d", got, want)
		}
	}
	var p cuda.Ptr
	alloc := func(size int64) func() {
		return func() {
			var err error
			p, err = d.MemAlloc(size)
			must(err)
		}
	}
	var h cuda.Handle
	create := func() {
		var err error
		h, err = d.Create(4 * mib)
		must(err)
	}
	waits(0, alloc(4*mib))
	must(d.MemFree(p))
	waits(20, alloc(4*mib)) // all of it
	must(d.MemFree(p))
	waits(20, alloc(8*mib)) // of which one half is clear
	waits(0, create)
	must(d.Release(h)) // is cleared in 20
	d.Job(15)
	waits(5, create)
	must(d.Release(h))
	d.Job(100)
	waits(0, create)
	must(d.MemFree(p)) // is cleared in 40
	must(d.Release(h)) // is cleared after that
	waits(20, create)  // for its own size
	must(d.Release(h))
	d.Job(-1)
	d.Job(1 << 62)
	waits(0, create)
	h2, err := d.Create(4 * mib)
	must(err)
	a, err := d.AddressReserve(4 * mib)
	must(err)
	must(d.Map(a, h2))
	must(d.Release(h2))
	waits(0, create) // as what is mapped is not given back
	must(d.Unmap(a, 4*mib))
	waits(20, create)
}

func TestHeldEvents(t *testing.T) {
	d := New(0, H200())
	passed := func(e cuda.Event) bool {
		ok, err := d.EventQuery(e)
		must(t)(err)
		return ok
	}
	free, err := d.EventRecord(0)
	must(t)(err)
	held := d.Hold(func() {
		for range 2 {
			_, err := d.EventRecord(1)
			must(t)(err)
		}
	})
	if len(held) != 2 || !passed(free) || passed(held[0]) || passed(held[1]) {
		t.Fatalf("held %v", held)
	}
	must(t)(d.EventSynchronize(held[0]))
	if !passed(held[0]) || passed(held[1]) {
		t.Error("waiting for one event is not waiting for it")
	}
	d.Complete(held)
	if !passed(held[1]) {
		t.Error("a completed event has not passed")
	}
}

func TestFollow(t *testing.T) {
	d := New(0, H200())
	d.Follow([]Range{{0x1000000, 2 * mib}, {0x5000000, 4 * mib}, {0x9000000, 2 * mib}})
	at := func(size int64) cuda.Ptr {
		p, err := d.MemAlloc(size)
		must(t)(err)
		return p
	}
	if p := at(2 * mib); p != 0x1000000 {
		t.Errorf("first at %#x", p)
	}
	if p := at(6 * mib); p < 0x9000000+2*mib {
		t.Errorf("another size at %#x, among the recorded addresses", p)
	}
	if p := at(2 * mib); p == 0x9000000 {
		t.Error("followed a recording that it had left")
	}
}
