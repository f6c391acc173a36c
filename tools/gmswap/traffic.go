package main

import (
	"gm/internal/cli"
	"gm/internal/nvml"
	"gm/internal/units"
)

// traffic is what GPUs have sent and received over PCIe up to a moment, by NVML's counters.
type traffic []passed

type passed struct{ sent, received int64 } // bytes

// countTraffic returns nothing where there is no NVML, or where it does not count.
func countTraffic() traffic {
	library, err := nvml.Open()
	if err != nil {
		return nil
	}
	defer library.Close()
	devices, err := library.Devices()
	if err != nil {
		return nil
	}
	all := make(traffic, len(devices))
	for i, d := range devices {
		if all[i].sent, all[i].received, err = d.Traffic(); err != nil {
			return nil
		}
	}
	return all
}

// worth is so little traffic, in bytes, that what is beside it may be other processes'.
const worth = 1 << 30

// say says what has passed since an earlier moment, of the GPUs with much of it.
func (t traffic) say(c *cli.Context, before traffic) {
	for i := range min(len(t), len(before)) {
		sent, received := t[i].sent-before[i].sent, t[i].received-before[i].received
		if max(sent, received) >= worth {
			c.Note("NVML counts %s from GPU %d over PCIe, and %s to it, of all processes", units.Bytes(sent), i, units.Bytes(received))
		}
	}
}
