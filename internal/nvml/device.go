package nvml

import (
	"fmt"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Device is a GPU, or a MIG instance of one.
type Device struct {
	UUID  string // "GPU-" or "MIG-" and 36 characters
	Name  string // such as "NVIDIA H200"
	Total int64  // bytes of memory

	handle   handle
	memory   memoryCall
	listing  bool // the library can list processes
	drawing  bool // also those that draw
	rating   bool // it knows how busy the device is
	counting bool // it can read counters
}

// handle is the part of a go-nvml device that is used.
type handle interface {
	GetName() (string, nvml.Return)
	GetMemoryInfo() (nvml.Memory, nvml.Return)
	GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return)
	GetComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
	GetGraphicsRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
	GetUtilizationRates() (nvml.Utilization, nvml.Return)
	GetFieldValues(values []nvml.FieldValue) nvml.Return
}

// memoryCall is a function that returns a device's memory, in bytes.
type memoryCall func(handle) (total, used uint64, code nvml.Return)

// Device returns the device with a UUID, written as CUDA and nvidia-smi -L print it: "GPU-..." or "MIG-...".
func (l *Library) Device(uuid string) (*Device, error) {
	h, code := l.api.DeviceGetHandleByUUID(uuid)
	if code != nvml.SUCCESS {
		return nil, fmt.Errorf("find GPU %s: %w", uuid, code)
	}
	return l.device(uuid, h)
}

func (l *Library) device(uuid string, h handle) (*Device, error) {
	d := &Device{UUID: uuid, handle: h}
	var code nvml.Return
	if d.Name, code = h.GetName(); code != nvml.SUCCESS {
		return nil, fmt.Errorf("name of GPU %s: %w", uuid, code)
	}
	d.listing = l.has("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
		"nvmlDeviceGetComputeRunningProcesses")
	d.drawing = l.has("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2",
		"nvmlDeviceGetGraphicsRunningProcesses")
	d.rating = l.has("nvmlDeviceGetUtilizationRates")
	d.counting = l.has("nvmlDeviceGetFieldValues")
	var err error
	d.memory, d.Total, err = l.memoryOf(h)
	if err != nil {
		return nil, fmt.Errorf("memory of GPU %s: %w", uuid, err)
	}
	return d, nil
}

// memoryOf returns the newest memory function that works for a device, and the device's memory in bytes.
func (l *Library) memoryOf(h handle) (memoryCall, int64, error) {
	code := nvml.ERROR_FUNCTION_NOT_FOUND
	for _, c := range []struct {
		name string
		call memoryCall
	}{
		{"nvmlDeviceGetMemoryInfo_v2", memoryV2}, {"nvmlDeviceGetMemoryInfo", memoryV1},
	} {
		if !l.has(c.name) {
			continue
		}
		var total uint64
		if total, _, code = c.call(h); code == nvml.SUCCESS {
			return c.call, int64(total), nil
		}
	}
	return nil, 0, code
}

// memoryV2 does not count what the driver reserves for itself as used.
func memoryV2(h handle) (total, used uint64, code nvml.Return) {
	m, code := h.GetMemoryInfo_v2()
	return m.Total, m.Used, code
}

// memoryV1 is for drivers before 510 (2022).
func memoryV1(h handle) (total, used uint64, code nvml.Return) {
	m, code := h.GetMemoryInfo()
	return m.Total, m.Used, code
}

// Used returns the bytes of memory in use on the device by all processes (nvmlDeviceGetMemoryInfo_v2). They do not include what the driver
// reserves for itself, except for drivers before 510. The call takes about 8 us.
func (d *Device) Used() (int64, error) {
	_, used, code := d.memory(d.handle)
	if code != nvml.SUCCESS {
		return 0, fmt.Errorf("memory of GPU %s: %w", d.UUID, code)
	}
	return int64(used), nil
}

// ProcessUsed returns the bytes of memory that a process uses on the device, its contexts included:
// nvmlDeviceGetComputeRunningProcesses. It returns false if NVML does not know them: the process has no context there, or
// its PID namespace is not the one whose PIDs the driver uses. The call takes about 30 us, more with many processes.
func (d *Device) ProcessUsed(pid int) (int64, bool) {
	if !d.listing {
		return 0, false
	}
	processes, code := d.handle.GetComputeRunningProcesses()
	if code != nvml.SUCCESS {
		return 0, false
	}
	used, known := uint64(0), false
	for i := range processes {
		p := &processes[i]
		if int(p.Pid) == pid && p.UsedGpuMemory <= math.MaxInt64 { // all ones: not available
			used, known = used+p.UsedGpuMemory, true
		}
	}
	return int64(used), known
}
