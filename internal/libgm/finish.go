package main

// #include "libgm.h"
import "C"

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"gm/internal/atomicfile"
	"gm/internal/libgm/page"
)

// finish writes the file of GM_STATS, saves the page for gmstitch and removes it, at the end of the process. It does not call the driver,
// which may be shut down.
func (p *process) finish() {
	p.served.stop()
	if p.settings.run != "" {
		if err := p.page.Save(p.settings.run); err != nil {
			p.log.printf("%v", err)
		}
	}
	p.unshow()
	if p.settings.stats == "" {
		return
	}
	var open []*gpu
	for i := range p.gpus {
		g := p.gpus[i].Load()
		if g == nil || !bool(C.gm_lock_at_exit(C.int(i))) {
			continue
		}
		g.drainAtExit()
		open = append(open, g)
		defer C.gm_unlock(C.int(i))
	}
	write := func(to io.Writer) error { return writeSummary(to, open) }
	if p.settings.traced() {
		write = func(to io.Writer) error { return writeTrace(to, open, p.log) }
	}
	if err := writeFile(statsPath(p.settings.stats), write); err != nil {
		p.log.printf("GM_STATS: %v", err)
	}
}

// statsPath replaces %p by the process id, so that the processes of a job do not write over each other's files.
func statsPath(path string) string { return strings.ReplaceAll(path, "%p", fmt.Sprint(os.Getpid())) }

// writeFile writes the file of a path, a buffer at a time.
func writeFile(path string, write func(io.Writer) error) error {
	return atomicfile.Write(path, func(to io.Writer) error {
		buffer := bufio.NewWriterSize(to, 1<<20)
		if err := write(buffer); err != nil {
			return err
		}
		return buffer.Flush()
	})
}

// summary is what GM_STATS holds in JSON.
type summary struct {
	PID       int             `json:"pid"`
	Command   []string        `json:"command"`
	Allocator string          `json:"allocator"`
	Devices   []deviceSummary `json:"devices"`
}

type deviceSummary struct {
	Device  int          `json:"device"`
	Total   int64        `json:"total"`
	Account page.Account `json:"account"`
	Plan    *planSummary `json:"plan,omitempty"` // nil if no plan was requested
}

// planSummary counts the requests that got an address of the plan, and those that did not while it was followed.
type planSummary struct {
	Followed int64 `json:"followed"`
	Strayed  int64 `json:"strayed"`
}

// planned is an allocator that follows a plan.
type planned interface {
	Followed() (followed, strayed int64)
}

func writeSummary(to io.Writer, open []*gpu) error {
	s := summary{PID: os.Getpid(), Command: commandLine(), Allocator: self.settings.alloc, Devices: []deviceSummary{}}
	for _, g := range open {
		d := deviceSummary{Device: g.ordinal, Total: g.meter.total, Account: g.account.copy()}
		if a, ok := g.alloc.(planned); ok {
			d.Plan = new(planSummary)
			d.Plan.Followed, d.Plan.Strayed = a.Followed()
		}
		s.Devices = append(s.Devices, d)
	}
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// commandLine returns the words that the process was started with; Go's own are not those of a library's process.
func commandLine() []string {
	text, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}
