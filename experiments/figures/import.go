package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"gm/formats/trace"
	"gm/internal/units"
)

// Importing the largest of the snapshots may take so much, and an event so many bytes in a trace of that many rows or more: in a
// short one it is the footer that counts.
const (
	importTime   = 2 * time.Second
	importMemory = 300 << 20
	eventBytes   = 12
	eventRows    = 1000
)

// gmtraceImport runs gmtrace import and returns its largest resident set, in bytes.
func gmtraceImport(snapshot, trace string) (int64, error) {
	cmd := exec.Command("bin/gmtrace", "import", snapshot, "-o", trace)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("gmtrace import %s: %w", snapshot, err)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10, nil
}

func measureImport(e *experiment) error {
	for _, s := range e.traces {
		if s.snapshot == "" {
			continue
		}
		var memory int64
		took, err := bestOf(func() (err error) {
			memory, err = gmtraceImport(s.snapshot, s.trace)
			return err
		})
		if err != nil {
			return err
		}
		size, rows, err := bytesPerEvent(s.trace)
		if err != nil {
			return err
		}
		e.add("import "+s.name, fmt.Sprintf("%.2f s, %s, %.2f bytes/event", took.Seconds(), units.Bytes(memory), size),
			fmt.Sprintf("%s, %s, %d", importTime, units.Bytes(importMemory), eventBytes),
			took <= importTime && memory <= importMemory && (size < eventBytes || rows < eventRows))
	}
	return nil
}

// bytesPerEvent returns the size of a trace divided by its rows, and those.
func bytesPerEvent(file string) (float64, int64, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, 0, err
	}
	r, err := trace.Open(file)
	if err != nil {
		return 0, 0, err
	}
	return float64(info.Size()) / float64(r.Rows()), r.Rows(), r.Close()
}
