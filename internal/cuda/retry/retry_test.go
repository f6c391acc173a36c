package retry

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

const mib = 1 << 20

var errRefused = errors.New("refused")

// refusing is a device that refuses calls by name.
type refusing struct {
	cuda.Device
	refuse map[string]error
	calls  []string
}

func (d *refusing) call(name string, call func() error) error {
	d.calls = append(d.calls, name)
	if err := d.refuse[name]; err != nil {
		return err
	}
	return call()
}

func (d *refusing) Unmap(p cuda.Ptr, size int64) error {
	return d.call("Unmap", func() error { return d.Device.Unmap(p, size) })
}

func (d *refusing) Release(h cuda.Handle) error {
	return d.call("Release", func() error { return d.Device.Release(h) })
}

func (d *refusing) AddressFree(p cuda.Ptr, size int64) error {
	return d.call("AddressFree", func() error { return d.Device.AddressFree(p, size) })
}

func (d *refusing) MemFree(p cuda.Ptr) error {
	return d.call("MemFree", func() error { return d.Device.MemFree(p) })
}

// job is a device that refuses, one that retries on top of it, and what was told.
type job struct {
	*Device
	under *refusing
	told  []string
	t     *testing.T
}

func newJob(t *testing.T, capacity int64) *job {
	j := &job{under: &refusing{Device: sim.New(capacity, sim.H200()), refuse: map[string]error{}}, t: t}
	j.Device = New(j.under, func(call string, err error) { j.told = append(j.told, fmt.Sprint(call, ": ", err)) })
	return j
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// mapped returns addresses with memory.
func (j *job) mapped() (cuda.Ptr, cuda.Handle) {
	j.t.Helper()
	p, err := j.AddressReserve(2 * mib)
	j.must(err)
	h, err := j.Create(2 * mib)
	j.must(err)
	j.must(j.Map(p, h))
	j.must(j.SetAccess(p, 2*mib))
	return p, h
}

func (j *job) free() int64 {
	j.t.Helper()
	free, _, err := j.under.Device.MemInfo()
	j.must(err)
	return free
}

// TestOwed has each way to undo something refused: nobody sees it, one line tells of it, and it is made up for.
func TestOwed(t *testing.T) {
	undo := func(j *job) {
		p, h := j.mapped()
		a, err := j.MemAlloc(2 * mib)
		j.must(err)
		j.must(j.Unmap(p, 2*mib))
		j.must(j.Release(h))
		j.must(j.AddressFree(p, 2*mib))
		j.must(j.MemFree(a))
	}
	for name, told := range map[string]string{
		"Unmap": "unmap: refused", "Release": "release: refused", "AddressFree": "free addresses: refused", "MemFree": "free: refused",
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, 64*mib)
			j.under.refuse[name] = errRefused
			undo(j)
			if !slices.Equal(j.told, []string{told}) {
				t.Errorf("told %q, want %q", j.told, told)
			}
			if !j.Owes() {
				t.Error("nothing is owed")
			}
			j.Settle()
			if !j.Owes() {
				t.Error("nothing is owed though it is still refused")
			}
			delete(j.under.refuse, name)
			j.Settle()
			if j.Owes() || j.free() != 64*mib {
				t.Errorf("%d bytes are free in the end, something is owed: %v", j.free(), j.Owes())
			}
		})
	}
}

// TestAddressesAgain maps where an owed mapping is in the way.
func TestAddressesAgain(t *testing.T) {
	j := newJob(t, 64*mib)
	p, h := j.mapped()
	j.under.refuse["Unmap"] = errRefused
	j.must(j.Unmap(p, 2*mib))
	if err := j.Map(p, h); err == nil {
		t.Error("mapped where something is mapped")
	}
	delete(j.under.refuse, "Unmap")
	j.must(j.Map(p, h))
}

// TestFull fills the device, of which a part is owed.
func TestFull(t *testing.T) {
	j := newJob(t, 4*mib)
	p, h := j.mapped()
	a, err := j.MemAlloc(2 * mib)
	j.must(err)
	j.under.refuse["Unmap"], j.under.refuse["MemFree"] = errRefused, errRefused
	j.must(j.Unmap(p, 2*mib))
	j.must(j.Release(h))
	j.must(j.MemFree(a))
	if _, err := j.Create(2 * mib); !errors.Is(err, cuda.ErrOutOfMemory) {
		t.Errorf("create: %v", err)
	}
	if slices.Contains(j.under.calls, "Release") {
		t.Error("a handle was released that is mapped: its memory would be taken and not counted")
	}
	clear(j.under.refuse)
	_, err = j.Create(2 * mib)
	j.must(err)
	_, err = j.MemAlloc(2 * mib)
	j.must(err)
}

// TestCapture has a call refused because of a capture, which nobody is told of.
func TestCapture(t *testing.T) {
	j := newJob(t, 64*mib)
	p, _ := j.mapped()
	j.under.refuse["Unmap"] = fmt.Errorf("not now: %w", cuda.ErrCapturing)
	j.must(j.Unmap(p, 2*mib))
	if !j.Owes() || len(j.told) > 0 {
		t.Errorf("owed: %v, told %q", j.Owes(), j.told)
	}
}
