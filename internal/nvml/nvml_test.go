package nvml

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// scripted is a driver, and its only GPU.
type scripted struct {
	nvml.Device
	start     nvml.Return
	count     int
	missing   []string
	v2        nvml.Return
	used      uint64
	reserved  uint64
	list      nvml.Return
	processes []nvml.ProcessInfo
	drawing   []nvml.ProcessInfo
	busy      nvml.Return
	width     nvml.ValueType // of the counters
	counting  nvml.Return
	passed    map[uint32]uint64 // by field
	slow      time.Duration     // how long it takes to tell of those
	open      int
}

const uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef"

func (s *scripted) Init() nvml.Return {
	if s.start == nvml.SUCCESS {
		s.open++
	}
	return s.start
}

func (s *scripted) Shutdown() nvml.Return {
	s.open--
	return nvml.SUCCESS
}

func (s *scripted) DeviceGetCount() (int, nvml.Return) { return s.count, nvml.SUCCESS }

func (s *scripted) DeviceGetHandleByUUID(id string) (nvml.Device, nvml.Return) {
	if id != uuid {
		return nil, nvml.ERROR_NOT_FOUND
	}
	return s, nvml.SUCCESS
}

func (s *scripted) DeviceGetHandleByIndex(index int) (nvml.Device, nvml.Return) {
	if index > 0 {
		return nil, nvml.ERROR_GPU_IS_LOST
	}
	return s, nvml.SUCCESS
}

func (s *scripted) GetUUID() (string, nvml.Return) { return uuid, nvml.SUCCESS }

func (s *scripted) LookupSymbol(name string) error {
	if slices.Contains(s.missing, name) {
		return errors.New("not found")
	}
	return nil
}

func (s *scripted) GetName() (string, nvml.Return) { return "NVIDIA H200", nvml.SUCCESS }

func (s *scripted) GetMemoryInfo() (nvml.Memory, nvml.Return) {
	return nvml.Memory{Total: 1000, Used: s.used + s.reserved}, nvml.SUCCESS
}

func (s *scripted) GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return) {
	return nvml.Memory_v2{Total: 1000, Used: s.used, Reserved: s.reserved}, s.v2
}

func (s *scripted) GetComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return) {
	return s.processes, s.list
}

func (s *scripted) GetGraphicsRunningProcesses() ([]nvml.ProcessInfo, nvml.Return) {
	return s.drawing, s.list
}

func (s *scripted) GetUtilizationRates() (nvml.Utilization, nvml.Return) {
	return nvml.Utilization{Gpu: 42}, s.busy
}

// open starts a library on the driver and returns its GPU.
func open(t *testing.T, s *scripted) *Device {
	t.Helper()
	s.count = 1
	l, err := start(s)
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Device(uuid)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpenFails(t *testing.T) {
	for want, s := range map[string]*scripted{
		"libnvidia-ml.so.1 cannot be loaded: is NVIDIA's driver installed?": {start: nvml.ERROR_LIBRARY_NOT_FOUND},
		"ERROR_DRIVER_NOT_LOADED":                             {start: nvml.ERROR_DRIVER_NOT_LOADED},
		"the driver reports no GPU":                           {},
		"libnvidia-ml.so.1 has no function nvmlDeviceGetName": {missing: []string{"nvmlDeviceGetName"}},
		"libnvidia-ml.so.1 has no function nvmlShutdown":      {missing: []string{"nvmlShutdown"}, open: -1},
	} {
		_, err := start(s)
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		if s.open != 0 {
			t.Errorf("%s: the library is left open", want)
		}
	}
}

// TestOpen says one line or finds a GPU, whatever machine it runs on.
func TestOpen(t *testing.T) {
	l, err := Open()
	if err != nil {
		if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "open NVML: ") {
			t.Errorf("error %q", err)
		}
		return
	}
	if _, err := l.Device(uuid); err == nil {
		t.Error("a GPU of an invented UUID")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestProcesses(t *testing.T) {
	compute := []nvml.ProcessInfo{{Pid: 7, UsedGpuMemory: 10}, {Pid: 8, UsedGpuMemory: 100}, {Pid: 7, UsedGpuMemory: 30}, {Pid: 9, UsedGpuMemory: 1<<64 - 1}}
	drawing := []nvml.ProcessInfo{{Pid: 7, UsedGpuMemory: 40}, {Pid: 6, UsedGpuMemory: 40}}
	for name, c := range map[string]struct {
		gpu  scripted
		want []Process
	}{
		"both":            {scripted{processes: compute, drawing: drawing}, []Process{{8, 100}, {6, 40}, {7, 40}, {9, -1}}},
		"none":            {scripted{}, nil},
		"compute alone":   {scripted{processes: compute, drawing: drawing, missing: graphics}, []Process{{8, 100}, {7, 40}, {9, -1}}},
		"of another user": {scripted{processes: compute[3:]}, []Process{{9, -1}}},
	} {
		if got, err := open(t, &c.gpu).Processes(); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	if got, err := open(t, &scripted{list: nvml.ERROR_NO_PERMISSION}).Processes(); err == nil {
		t.Errorf("without permission: %v", got)
	}
	if busy, known := open(t, &scripted{}).Busy(); busy != 42 || !known {
		t.Errorf("busy %d, %v", busy, known)
	}
	for _, s := range []*scripted{{busy: nvml.ERROR_NOT_SUPPORTED}, {missing: []string{"nvmlDeviceGetUtilizationRates"}}} {
		if _, known := open(t, s).Busy(); known {
			t.Errorf("%v: how busy it is is known", s.busy)
		}
	}
}

var graphics = []string{
	"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses",
}

func TestUsed(t *testing.T) {
	for name, c := range map[string]struct {
		gpu  scripted
		want int64
	}{
		"v2":             {scripted{used: 300, reserved: 50}, 300},
		"v2 refused":     {scripted{used: 300, reserved: 50, v2: nvml.ERROR_NOT_SUPPORTED}, 350},
		"an old library": {scripted{used: 300, reserved: 50, missing: []string{"nvmlDeviceGetMemoryInfo_v2"}}, 350},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, &c.gpu)
			used, err := d.Used()
			if err != nil || used != c.want {
				t.Errorf("%d bytes used, error %v, want %d", used, err, c.want)
			}
			if d.Name != "NVIDIA H200" || d.Total != 1000 || d.UUID != uuid {
				t.Errorf("device %+v", d)
			}
		})
	}
}

func TestDevices(t *testing.T) {
	for count, want := range map[int]string{1: "", 2: "find GPU 1: ERROR_GPU_IS_LOST"} {
		l, err := start(&scripted{count: count})
		if err != nil {
			t.Fatal(err)
		}
		list, err := l.Devices()
		if len(list) != 1 || list[0].UUID != uuid || err != nil && err.Error() != want || err == nil && want != "" {
			t.Errorf("of %d GPUs %d, error %v", count, len(list), err)
		}
	}
}

func TestUnknownDevice(t *testing.T) {
	l, err := start(&scripted{count: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Device("GPU-1"); err == nil || err.Error() != "find GPU GPU-1: ERROR_NOT_FOUND" {
		t.Errorf("error %v", err)
	}
	silent := &scripted{count: 1, missing: []string{"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"}}
	if l, err = start(silent); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Device(uuid); err == nil || !strings.HasPrefix(err.Error(), "memory of GPU GPU-0123") {
		t.Errorf("error %v", err)
	}
}

func TestProcessUsed(t *testing.T) {
	of := func(pid uint32, bytes uint64) nvml.ProcessInfo {
		return nvml.ProcessInfo{Pid: pid, UsedGpuMemory: bytes}
	}
	for name, c := range map[string]struct {
		gpu   scripted
		want  int64
		known bool
	}{
		"alone":                {scripted{processes: []nvml.ProcessInfo{of(7, 400)}}, 400, true},
		"among others":         {scripted{processes: []nvml.ProcessInfo{of(6, 100), of(7, 400)}}, 400, true},
		"another is no guess":  {scripted{processes: []nvml.ProcessInfo{of(6, 100)}}, 0, false},
		"nobody":               {scripted{}, 0, false},
		"bytes not available":  {scripted{processes: []nvml.ProcessInfo{of(7, 1<<64-1)}}, 0, false},
		"refused":              {scripted{list: nvml.ERROR_NO_PERMISSION, processes: []nvml.ProcessInfo{of(7, 400)}}, 0, false},
		"in two MIG instances": {scripted{processes: []nvml.ProcessInfo{of(7, 400), of(7, 30)}}, 430, true},
		"the library is too old": {scripted{processes: []nvml.ProcessInfo{of(7, 400)}, missing: []string{
			"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3",
		}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if used, known := open(t, &c.gpu).ProcessUsed(7); used != c.want || known != c.known {
				t.Errorf("%d bytes, %t, want %d, %t", used, known, c.want, c.known)
			}
		})
	}
}
