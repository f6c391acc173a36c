package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"gm/internal/cuda/fake"
)

// collectorPause is the longest that Go's collector may stop the program, in microseconds.
const collectorPause = 100

// measureLatency times the calls of libgm.so on the fake driver.
func measureLatency(e *experiment) error {
	libraries, err := fake.Build(e.dir, "-O2")
	if errors.Is(err, fake.ErrNoCompiler) {
		e.table.Add("latency", "no C compiler", "", "not measured")
		return nil
	}
	if err != nil {
		return err
	}
	library, err := filepath.Abs("bin/libgm.so")
	if err != nil {
		return err
	}
	var out, log bytes.Buffer
	cmd := exec.Command("bin/latency", library)
	cmd.Env = append(append(os.Environ(), libraries.Env("")...), "GODEBUG=gctrace=1")
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("bin/latency: %w\n%s", err, log.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, line := range lines[1:] {
		if err := e.latency(line); err != nil {
			return err
		}
	}
	collections, pause := pauses(log.String())
	e.add("latency: pauses of Go's collector", fmt.Sprintf("%.0f us in %d collections", pause, collections),
		fmt.Sprintf("<= %d us", collectorPause), pause <= collectorPause)
	return nil
}

// latency adds a line of bin/latency: a name, then p50, p99, p99.9, the longest, and targets for the first and the third.
func (e *experiment) latency(line string) error {
	words := strings.Fields(line)
	const numbers = 6
	var ns [numbers]int
	if len(words) <= numbers {
		return fmt.Errorf("bin/latency: line %q", line)
	}
	first := len(words) - numbers
	for i := range ns {
		n, err := strconv.Atoi(words[first+i])
		if err != nil {
			return fmt.Errorf("bin/latency: line %q: %w", line, err)
		}
		ns[i] = n
	}
	target, met := fmt.Sprintf("p99.9 <= %d ns", ns[5]), ns[2] <= ns[5]
	if ns[4] > 0 {
		target, met = fmt.Sprintf("p50 <= %d, %s", ns[4], target), met && ns[0] <= ns[4]
	}
	measured := fmt.Sprintf("p50 %d, p99 %d, p99.9 %d, max %d ns", ns[0], ns[1], ns[2], ns[3])
	e.add("latency: "+strings.Join(words[:first], " "), measured, target, met)
	return nil
}

// gctrace is a line of GODEBUG=gctrace=1; the first and the last of its times are those for which the program stood still.
var gctrace = regexp.MustCompile(`(?m)^gc \d+ @.*?: ([\d.]+)\+[\d.]+\+([\d.]+) ms clock`)

// pauses returns how often Go's collector ran, and the longest pause in microseconds.
func pauses(log string) (collections int, longest float64) {
	for _, found := range gctrace.FindAllStringSubmatch(log, -1) {
		collections++
		for _, text := range found[1:] {
			if ms, err := strconv.ParseFloat(text, 64); err == nil {
				longest = max(longest, 1000*ms)
			}
		}
	}
	return collections, longest
}
