package main

import (
	"fmt"

	"gm/internal/bench/replay"
	"gm/internal/cli"
	"gm/internal/units"
)

// failedRequest is a request that failed in the job as it is, while none failed in the job as it was.
type failedRequest struct {
	Row   int64 `json:"row"`
	Size  int64 `json:"requested_bytes"`
	Later int64 `json:"later"` // requests that were met after it
}

// String says that it failed.
func (f *failedRequest) String() string {
	text := fmt.Sprintf("a request of %s failed at row %d, and none failed before", units.Bytes(f.Size), f.Row)
	if f.Later > 0 {
		text += "; the program went on, through " + units.Count(f.Later, "more request")
	}
	return text
}

// requestsFailed is the name of the row about requests that failed.
const requestsFailed = "requests"

// died returns the last request of a GPU that failed, nil if none did, or if one failed in the job as it was, too: a warning then says that
// this job may have needed more than it got.
func (cmd *checkCmd) died(c *cli.Context, before, after *replay.Program) *checked {
	if n := len(before.Refusals); n > 0 {
		r := before.Refusals[n-1]
		c.Warn("%s: device %d: a request of %s failed at row %d: it may have needed more than its peak", cmd.Before, before.Device, units.Bytes(r.Size), r.Row)
		return nil
	}
	n := len(after.Refusals)
	if n == 0 {
		return nil
	}
	r := after.Refusals[n-1]
	failed := &failedRequest{Row: r.Row, Size: r.Size}
	for _, kind := range after.Kinds[r.Step:] {
		if kind == replay.Alloc {
			failed.Later++
		}
	}
	return &checked{Device: after.Device, What: requestsFailed, After: r.Size, Failed: failed, allowed: "none"}
}
