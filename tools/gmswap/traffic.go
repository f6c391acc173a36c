package main

import (
	"slices"
	"time"

	"gm/internal/cli"
	"gm/internal/nvml"
	"gm/internal/units"
)

// traffic is what GPUs send and receive over PCIe while a program runs, by NVML's counters.
type traffic struct {
	library *nvml.Library
	meters  []*nvml.Meter
	end     chan struct{}
	ended   chan error
}

// watchTraffic begins to count. It returns nil where there is no NVML, or where it does not count.
func watchTraffic() *traffic {
	library, err := nvml.Open()
	if err != nil {
		return nil
	}
	t := &traffic{library: library, end: make(chan struct{}), ended: make(chan error, 1)}
	if err := t.open(); err != nil {
		library.Close()
		return nil
	}
	go t.watch()
	return t
}

func (t *traffic) open() error {
	devices, err := t.library.Devices()
	if err != nil {
		return err
	}
	for _, d := range devices {
		m, err := d.Meter()
		if err != nil {
			return err
		}
		t.meters = append(t.meters, m)
	}
	return nil
}

// watch reads the meters until the end, or only at the end if none wraps around.
func (t *traffic) watch() {
	var tick <-chan time.Time
	if slices.ContainsFunc(t.meters, (*nvml.Meter).Narrow) {
		tick = time.Tick(nvml.MeterPeriod / 2)
	}
	for going := true; going; {
		select {
		case <-tick:
		case <-t.end:
			going = false
		}
		for _, m := range t.meters {
			if err := m.Read(); err != nil {
				t.ended <- err
				return
			}
		}
	}
	t.ended <- nil
}

// worth is so little traffic, in bytes, that what is beside it may be other processes'.
const worth = 1 << 30

// say ends the count and says what has passed, of the GPUs with much of it.
func (t *traffic) say(c *cli.Context) {
	if t == nil {
		return
	}
	close(t.end)
	err := <-t.ended
	t.library.Close()
	if err != nil {
		return
	}
	for i, m := range t.meters {
		least := ""
		if m.Late {
			least = "at least "
		}
		if max(m.Sent, m.Received) >= worth {
			c.Note("NVML counts %s%s from GPU %d over PCIe, and %s%s to it, of all processes, with the headers of packets", least, units.Bytes(m.Sent), i, least, units.Bytes(m.Received))
		}
	}
}
