package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gm/internal/cuda/fake"
)

// What libgm.so took when it held the planners, in MiB: the file, and a process that follows a plan of the same iteration. It is to take less.
const (
	libraryMiB  = 8.22
	residentMiB = 205
)

// measureFootprint measures the size of libgm.so, and the memory of a process that uses it on the fake driver, with a plan that takes work
// to make.
func measureFootprint(e *experiment) error {
	libraries, err := fake.Build(e.dir, "-O2")
	if errors.Is(err, fake.ErrNoCompiler) {
		e.table.Add("footprint", "no C compiler", "", "not measured")
		return nil
	}
	if err != nil {
		return err
	}
	library, err := filepath.Abs("bin/libgm.so")
	if err != nil {
		return err
	}
	info, err := os.Stat(library)
	if err != nil {
		return err
	}
	size := float64(info.Size()) / (1 << 20)
	e.add("footprint: libgm.so", fmt.Sprintf("%.1f MiB", size), fmt.Sprintf("< %.2f MiB, with planners", libraryMiB), size < libraryMiB)
	var log bytes.Buffer
	cmd := exec.Command("bin/footprint", library)
	cmd.Env = append(append(os.Environ(), libraries.Env("")...), "GM_AUTO=1", "GM_DIR="+filepath.Join(e.dir, "pages"))
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("bin/footprint: %w\n%s", err, log.String())
	}
	for line := range strings.Lines(string(out)) {
		var anonymous, file int
		name, rest, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscan(rest, &anonymous, &file); err != nil {
			return fmt.Errorf("bin/footprint: line %q: %w", line, err)
		}
		mib := float64(anonymous+file) / 1024
		e.add("footprint: resident, "+name, fmt.Sprintf("%.1f MiB", mib), fmt.Sprintf("< %d MiB, with planners", residentMiB), mib < residentMiB)
	}
	if !strings.Contains(log.String(), "planned in") {
		return fmt.Errorf("bin/footprint: no plan was made: %s", log.String())
	}
	return nil
}
