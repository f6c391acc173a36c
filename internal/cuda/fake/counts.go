package fake

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
)

// Count counts one kind of memory in all processes that share a file of counts, including those that have ended.
type Count struct {
	Current, Peak, Total uint64 // requested bytes; Total is the sum of all requests
	Allocs, Frees        uint64 // calls that succeeded
}

// DeviceCount is the memory of one device that all processes use, including what ended processes did not free.
type DeviceCount struct {
	Used, Peak uint64 // bytes, rounded as the device rounds them
}

// Process is the memory that one process uses, or used when it ended.
type Process struct {
	PID  int
	Used [8]uint64 // bytes of each device
}

// Counts is the fake driver's own account (enum fake_kind in driver/fake.h describes the kinds).
type Counts struct {
	Memory, Physical, Context, Module, PoolReserved, PoolUsed, Managed, PinnedHost, HostPhysical Count

	Devices   []DeviceCount
	Processes []Process
}

// file is struct fake_counts.
type file struct {
	Magic                              [8]byte
	Version, Kinds, Devices, Processes uint32
	Kind                               [16]Count
	Device                             [8]DeviceCount
	Process                            [32]struct {
		PID, _ uint32
		Used   [8]uint64
	}
}

// ReadCounts reads the file that GM_FAKE_COUNTS named. Programs may be writing it, or may have been killed.
func ReadCounts(path string) (Counts, error) {
	f, err := readFile(path)
	if err != nil {
		return Counts{}, fmt.Errorf("reading the counts of the fake driver: %w", err)
	}
	c := Counts{
		Memory: f.Kind[0], Physical: f.Kind[1], Context: f.Kind[2], Module: f.Kind[3], PoolReserved: f.Kind[4],
		PoolUsed: f.Kind[5], Managed: f.Kind[6], PinnedHost: f.Kind[7], HostPhysical: f.Kind[8],
		Devices: f.Device[:f.Devices],
	}
	for _, p := range f.Process {
		if p.PID != 0 {
			c.Processes = append(c.Processes, Process{PID: int(p.PID), Used: p.Used})
		}
	}
	return c, nil
}

// SetProcess has NVML tell of a process, in place of the first one in a file of counts. No program may be writing it.
func SetProcess(path string, p Process) error {
	f, err := readFile(path)
	if err != nil {
		return fmt.Errorf("setting a process of the fake driver: %w", err)
	}
	f.Process[0].PID, f.Process[0].Used = uint32(p.PID), p.Used
	to, err := os.OpenFile(path, os.O_WRONLY, 0) // which programs have mapped: it stays the same file
	if err != nil {
		return fmt.Errorf("setting a process of the fake driver: %w", err)
	}
	defer to.Close()
	if err := binary.Write(to, binary.NativeEndian, f); err != nil {
		return fmt.Errorf("setting a process of the fake driver: %s: %w", path, err)
	}
	return nil
}

func readFile(path string) (f file, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	if err := binary.Read(bytes.NewReader(data), binary.NativeEndian, &f); err != nil {
		return file{}, fmt.Errorf("%s: %w", path, err)
	}
	if string(f.Magic[:]) != "gmfake01" || f.Version != 1 || int(f.Devices) > len(f.Device) {
		return file{}, fmt.Errorf("%s holds none", path)
	}
	return f, nil
}
