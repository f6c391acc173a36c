package calibrate

import (
	"fmt"
	"slices"
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// meter times calls. After the first error it makes no more.
type meter struct {
	d     cuda.Device
	sleep func(time.Duration)
	times [sim.NumCalls]map[int64][]time.Duration // by size in bytes, of one call
	err   error
}

// do makes a call without timing it.
func (m *meter) do(f func() error) {
	if m.err == nil {
		m.err = f()
	}
}

// rest waits until the driver has cleared size bytes that were released.
func (m *meter) rest(size int64) { m.sleep(time.Duration(size/mib) * clearing) }

// time returns the time of a call for n pieces of size bytes, divided by n.
func (m *meter) time(call sim.Call, size int64, n int, f func() error) time.Duration {
	if m.err != nil {
		return 0
	}
	start := time.Now()
	err := f()
	elapsed := time.Since(start)
	if err != nil {
		m.err = fmt.Errorf("measure %v of %d pieces of %d bytes: %w", call, n, size, err)
	}
	return elapsed / time.Duration(n)
}

// timeEach returns the mean time of n calls, each for a piece of size bytes.
func (m *meter) timeEach(call sim.Call, size int64, n int, f func(i int) error) time.Duration {
	return m.time(call, size, n, func() error {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	})
}

// add records the time of a call.
func (m *meter) add(call sim.Call, size int64, t time.Duration) {
	if m.times[call] == nil {
		m.times[call] = map[int64][]time.Duration{}
	}
	m.times[call][size] = append(m.times[call][size], t)
}

// each times n calls, each for a piece of size bytes, and records the mean.
func (m *meter) each(call sim.Call, size int64, n int, f func(i int) error) {
	m.add(call, size, m.timeEach(call, size, n, f))
}

// table returns the medians.
func (m *meter) table() sim.CostTable {
	var t sim.CostTable
	for call, bySize := range m.times {
		for size, times := range bySize {
			slices.Sort(times)
			t[call] = append(t[call], sim.Point{Bytes: size, Cost: times[len(times)/2]})
		}
		slices.SortFunc(t[call], func(a, b sim.Point) int { return int(a.Bytes - b.Bytes) })
	}
	return t
}
