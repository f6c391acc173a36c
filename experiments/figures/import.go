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
		var memory int64
		took, err := bestOf(func() (err error) {
			memory, err = gmtraceImport(s.snapshot, s.trace)
			return err
		})
		if err != nil {
			return err
		}
		e.add("import "+s.name, fmt.Sprintf("%.2f s, %s", took.Seconds(), units.Bytes(memory)),
			fmt.Sprintf("%s, %s", importTime, units.Bytes(importMemory)), took <= importTime && memory <= importMemory)
	}
	return nil
}
