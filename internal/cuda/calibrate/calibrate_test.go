package calibrate

import (
	"errors"
	"slices"
	"testing"
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// measured measures a simulated device, on which calls take next to no time.
func measured(t *testing.T, d cuda.Device) (table sim.CostTable, steps int) {
	t.Helper()
	table, err := costs(d, [2]cuda.Stream{1, 2}, func() { steps++ }, func(time.Duration) {})
	if err != nil {
		t.Fatal(err)
	}
	return table, steps
}

// at returns the sizes of a curve.
func at(c sim.Curve) []int64 {
	var all []int64
	for _, p := range c {
		all = append(all, p.Bytes)
	}
	return all
}

func TestCosts(t *testing.T) {
	d := sim.New(0, sim.CostTable{})
	table, steps := measured(t, d)
	if steps != Steps {
		t.Errorf("%d steps, want %d", steps, Steps)
	}
	if d.Used() != 0 {
		t.Errorf("%d bytes are left", d.Used())
	}
	for call := range sim.NumCalls {
		want := sizes[:]
		switch call {
		case sim.AddressReserve, sim.AddressFree:
			want = append(slices.Clip(want), ranges[:]...)
		case sim.EventRecord, sim.EventQuery, sim.StreamWaitEvent:
			want = []int64{0}
		}
		if got := at(table[call]); !slices.Equal(got, want) {
			t.Errorf("%v was measured for %d bytes, want %d", call, got, want)
		}
	}
}

// bounded is a device that has more in use than it had free, divided by four.
type bounded struct {
	*sim.Device
	limit int64
	over  bool
}

func (b *bounded) MemAlloc(size int64) (cuda.Ptr, error) {
	p, err := b.Device.MemAlloc(size)
	b.over = b.over || b.Used() > b.limit
	return p, err
}

func (b *bounded) Create(size int64) (cuda.Handle, error) {
	h, err := b.Device.Create(size)
	b.over = b.over || b.Used() > b.limit
	return h, err
}

func TestQuarterOfMemory(t *testing.T) {
	const capacity = 1200 * mib
	d := &bounded{Device: sim.New(capacity, sim.CostTable{}), limit: capacity / 4}
	table, _ := measured(t, d)
	if d.over {
		t.Error("more than a quarter of the memory was used")
	}
	if got := at(table[sim.Create]); !slices.Equal(got, sizes[:3]) {
		t.Errorf("sizes %d were measured", got)
	}
	if _, err := Costs(sim.New(7*mib, sim.CostTable{}), [2]cuda.Stream{}, func() {}); err == nil {
		t.Error("a device that is full is measured")
	}
}

// clearingDevice is a device that clears what is given back, in the time that it is left or when it is needed.
type clearingDevice struct {
	*sim.Device
	dirty bool
}

// clears is what that takes.
const clears = 8 * time.Millisecond

func (c *clearingDevice) Release(h cuda.Handle) error {
	c.dirty = true
	return c.Device.Release(h)
}

func (c *clearingDevice) SetAccess(p cuda.Ptr, size int64) error {
	if c.dirty {
		time.Sleep(clears)
	}
	c.dirty = false
	return c.Device.SetAccess(p, size)
}

func TestClearing(t *testing.T) {
	d := &clearingDevice{Device: sim.New(1200*mib, sim.CostTable{})}
	table, err := costs(d, [2]cuda.Stream{1, 2}, func() {}, func(rest time.Duration) {
		if rest < 2*clearing {
			t.Errorf("rests for %v", rest)
		}
		d.dirty = false
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range table[sim.Clear] {
		n := min(300*mib/p.Bytes, burst)
		if want := clears / time.Duration(n); p.Cost < want || table[sim.Create][i].Cost > want/2 || table[sim.SetAccess][i].Cost > want/2 {
			t.Errorf("%d bytes: clearing %v, cuMemCreate %v, cuMemSetAccess %v; want %v for clearing alone",
				p.Bytes, p.Cost, table[sim.Create][i].Cost, table[sim.SetAccess][i].Cost, want)
		}
	}
}

// narrow has few addresses, and fails a call.
type narrow struct {
	*sim.Device
	fail error
}

func (n narrow) AddressReserve(size int64) (cuda.Ptr, error) {
	if size > 1<<40 {
		return 0, cuda.ErrOutOfMemory
	}
	return n.Device.AddressReserve(size)
}

func (n narrow) EventQuery(cuda.Event) (bool, error) { return true, n.fail }

func TestFewAddresses(t *testing.T) {
	table, _ := measured(t, narrow{Device: sim.New(0, sim.CostTable{})})
	if got := at(table[sim.AddressReserve]); got[len(got)-1] != 256<<30 {
		t.Errorf("sizes %d were measured", got)
	}
	failed := errors.New("failed")
	_, err := costs(narrow{sim.New(0, sim.CostTable{}), failed}, [2]cuda.Stream{}, func() {}, func(time.Duration) {})
	if !errors.Is(err, failed) || err.Error() != "measure cuEventQuery of 64 pieces of 0 bytes: failed" {
		t.Errorf("a call that fails: %v", err)
	}
}
