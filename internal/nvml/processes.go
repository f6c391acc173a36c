package nvml

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Process is a process with a context on a device.
type Process struct {
	PID  int   // in the PID namespace of the driver, which is that of the host
	Used int64 // bytes of the device's memory; -1 if NVML does not say
}

// Processes returns the processes that compute or draw on the device, those that use the most memory first.
func (d *Device) Processes() ([]Process, error) {
	if !d.listing {
		return nil, fmt.Errorf("processes on GPU %s: libnvidia-ml.so.1 cannot list them", d.UUID)
	}
	all, code := d.handle.GetComputeRunningProcesses()
	if code != nvml.SUCCESS {
		return nil, fmt.Errorf("processes on GPU %s: %w", d.UUID, code)
	}
	used := add(map[int]int64{}, all)
	if d.drawing {
		if drawing, code := d.handle.GetGraphicsRunningProcesses(); code == nvml.SUCCESS {
			for pid, bytes := range add(map[int]int64{}, drawing) {
				used[pid] = max(used[pid], bytes) // one that does both is in both lists, with all it uses
			}
		}
	}
	var list []Process
	for pid, bytes := range used {
		list = append(list, Process{pid, bytes})
	}
	slices.SortFunc(list, func(a, b Process) int { return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(a.PID, b.PID)) })
	return list, nil
}

// add adds what processes use to a table by PID. One with several contexts is listed once for each.
func add(used map[int]int64, processes []nvml.ProcessInfo) map[int]int64 {
	for i := range processes {
		p := &processes[i]
		before, known := used[int(p.Pid)]
		switch {
		case p.UsedGpuMemory <= math.MaxInt64:
			used[int(p.Pid)] = max(before, 0) + int64(p.UsedGpuMemory)
		case !known:
			used[int(p.Pid)] = -1 // all ones: not available
		}
	}
	return used
}

// Busy returns the share of the last sampling period in which a kernel ran, in percent; false if NVML does not know it.
func (d *Device) Busy() (int, bool) {
	if !d.rating {
		return 0, false
	}
	rates, code := d.handle.GetUtilizationRates()
	return int(rates.Gpu), code == nvml.SUCCESS
}
