package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"gm/internal/libgm/page"
	"gm/internal/report"
	"gm/internal/units"
)

// job is a process, as JSON.
type job struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Started time.Time `json:"started"` // using the GPU
	Devices []device  `json:"devices"`
}

// device is a device that a process uses. Its fields are those of torch.cuda.memory_stats.
type device struct {
	Device         int      `json:"device"`
	TotalBytes     int64    `json:"total_bytes"`
	Utilisation    *float64 `json:"utilisation"` // null before anything was reserved
	Allocation     counters `json:"allocation"`
	AllocatedBytes counters `json:"allocated_bytes"`
	RequestedBytes counters `json:"requested_bytes"`
	ActiveBytes    counters `json:"active_bytes"`
	ReservedBytes  counters `json:"reserved_bytes"`
	Segment        counters `json:"segment"`
	Retries        int64    `json:"num_alloc_retries"`
	OOMs           int64    `json:"num_ooms"`
	Stitches       int64    `json:"stitches"`
	DriverCalls    int64    `json:"driver_calls"`
	DriverNS       int64    `json:"driver_ns"`
}

type counters struct {
	All   counter `json:"all"`
	Small counter `json:"small_pool"`
	Large counter `json:"large_pool"`
}

type counter struct {
	Current   int64 `json:"current"`
	Peak      int64 `json:"peak"`
	Allocated int64 `json:"allocated"`
	Freed     int64 `json:"freed"`
}

func countersOf(c [page.Kinds]page.Counter) counters {
	return counters{counter(c[page.All]), counter(c[page.Small]), counter(c[page.Large])}
}

// describe returns the account of a process.
func describe(s *page.Stats) job {
	j := job{PID: s.PID, Command: commandOf(s.PID), Started: time.Unix(0, s.Started).UTC(), Devices: []device{}}
	for _, ordinal := range slices.Sorted(maps.Keys(s.Devices)) {
		a := s.Devices[ordinal]
		d := device{
			Device: ordinal, TotalBytes: s.Totals[ordinal], Allocation: countersOf(a.Allocation),
			AllocatedBytes: countersOf(a.AllocatedBytes), RequestedBytes: countersOf(a.RequestedBytes),
			ActiveBytes: countersOf(a.ActiveBytes), ReservedBytes: countersOf(a.ReservedBytes), Segment: countersOf(a.Segment),
			Retries: a.Retries, OOMs: a.OOMs, Stitches: a.Stitches, DriverCalls: a.DriverCalls, DriverNS: a.DriverNS,
		}
		if share, ok := share(&a); ok {
			d.Utilisation = &share
		}
		j.Devices = append(j.Devices, d)
	}
	return j
}

// table shows a line for each device of each process.
func table(jobs []page.Stats) *report.Table {
	t := &report.Table{Titles: []string{
		"pid", "GPU", "allocated", "peak", "reserved", "peak", "utilisation", "blocks", "stitched", "OOM", "driver", "command",
	}}
	size := func(n int64) string { return units.Bytes(n).String() }
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for i := range jobs {
		s := &jobs[i]
		for _, ordinal := range slices.Sorted(maps.Keys(s.Devices)) {
			a := s.Devices[ordinal]
			allocated, reserved := a.AllocatedBytes[page.All], a.ReservedBytes[page.All]
			t.Add(strconv.Itoa(s.PID), strconv.Itoa(ordinal), size(allocated.Current), size(allocated.Peak), size(reserved.Current),
				size(reserved.Peak), utilisation(&a), number(a.Allocation[page.All].Current), number(a.Stitches), number(a.OOMs),
				time.Duration(a.DriverNS).Round(10*time.Microsecond).String(), shorten(commandOf(s.PID)))
		}
	}
	return t
}

// share returns the utilisation, if anything was reserved.
func share(a *page.Account) (float64, bool) {
	reserved := a.ReservedBytes[page.All].Peak
	if reserved == 0 {
		return 0, false
	}
	return float64(a.AllocatedBytes[page.All].Peak) / float64(reserved), true
}

func utilisation(a *page.Account) string {
	share, ok := share(a)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.4f", share)
}

// commandOf returns the words of a process, "" if they are not known.
func commandOf(pid int) string {
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimRight(string(words), "\x00"), "\x00", " ")
}

// shorten leaves out the folder of a command, and cuts it off where it is too long for a line.
func shorten(command string) string {
	const limit = 40
	if i := strings.IndexByte(command, ' '); i > 0 {
		command = filepath.Base(command[:i]) + command[i:]
	}
	if runes := []rune(command); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return command
}

// variableOf returns the value of a variable that a process was started with, "" if it is not known.
func variableOf(pid int, name string) string {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return ""
	}
	for text := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := strings.CutPrefix(string(text), name+"="); ok {
			return value
		}
	}
	return ""
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
