package main

import (
	"maps"
	"slices"

	"gm/internal/cli"
	"gm/internal/libgm/page"
	"gm/internal/units"
)

// summary keeps what the processes of a run have last shown.
type summary struct {
	folder string       // of the run
	ours   map[int]bool // whether a process is one of the run
	last   map[int]page.Stats
}

func newSummary(folder string) *summary {
	return &summary{folder, map[int]bool{}, map[int]page.Stats{}}
}

// look reads what the processes show now.
func (s *summary) look() {
	pids, err := page.List()
	if err != nil {
		return
	}
	for _, pid := range pids {
		ours, known := s.ours[pid]
		if !known {
			ours = variableOf(pid, folderVariable) == s.folder
			s.ours[pid] = ours
		}
		if !ours {
			continue
		}
		if stats, err := page.Read(pid); err == nil {
			s.last[pid] = stats
		}
	}
}

// tell says what the peaks were: those that processes left at their ends, and of those that were killed what was last seen.
func (s *summary) tell(c *cli.Context) {
	saved, err := page.Saved(s.folder)
	if err != nil {
		c.Warn("%v", err)
	}
	for _, stats := range saved {
		s.last[stats.PID] = stats
	}
	if len(s.last) == 0 {
		c.Note("no process has shown what it used")
	}
	for _, pid := range slices.Sorted(maps.Keys(s.last)) {
		devices := s.last[pid].Devices
		for _, device := range slices.Sorted(maps.Keys(devices)) {
			a := devices[device]
			c.Note("process %d, device %d: peak reserved %v, peak allocated %v, utilisation %s; stitched %s, out of memory %s",
				pid, device, units.Bytes(a.ReservedBytes[page.All].Peak), units.Bytes(a.AllocatedBytes[page.All].Peak),
				utilisation(&a), units.Times(a.Stitches), units.Times(a.OOMs))
		}
	}
}
