package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"gm/internal/units"
)

// Importing the largest of the snapshots may take so much.
const (
	importTime   = 2 * time.Second
	importMemory = 300 << 20
)

// gmtraceImport runs gmtrace import and returns how long it took and its largest resident set, in bytes.
func gmtraceImport(snapshot, trace string) (time.Duration, int64, error) {
	cmd := exec.Command("bin/gmtrace", "import", snapshot, "-o", trace)
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("gmtrace import %s: %w", snapshot, err)
	}
	return time.Since(start), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10, nil
}

func measureImport(e *experiment) error {
	for _, s := range e.traces {
		took, memory, err := gmtraceImport(s.snapshot, s.trace)
		if err != nil {
			return err
		}
		e.add("import "+s.name, fmt.Sprintf("%.2f s, %s", took.Seconds(), units.Bytes(memory)),
			fmt.Sprintf("%s, %s", importTime, units.Bytes(importMemory)), took <= importTime && memory <= importMemory)
	}
	return nil
}
