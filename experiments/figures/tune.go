package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gm/formats/trace"
	"gm/internal/units"
)

// A search of PyTorch's settings over a trace of up to so many rows may take so long on two cores; over a longer one, in proportion.
const (
	tuneTime = 20 * time.Second
	tuneRows = 100_000
)

// A page may take so long and be so large, whatever the trace.
const (
	reportTime = 5 * time.Second
	reportSize = 10_000_000
)

// measureTune times the search of PyTorch's settings over each trace.
func measureTune(e *experiment) error {
	for _, s := range e.traces {
		rows, err := rowsOf(s.trace)
		if err != nil {
			return err
		}
		start := time.Now()
		out, err := onTwoCores("bin/gmbench", "tune", "--json", s.trace)
		if err != nil {
			return err
		}
		took := time.Since(start)
		var found struct {
			Tried int         `json:"settings_tried"`
			Best  []tunedPeak `json:"best"`
			Usual tunedPeak   `json:"default"`
		}
		if err := json.Unmarshal(out, &found); err != nil {
			return fmt.Errorf("gmbench tune %s: %w", s.trace, err)
		}
		limit := max(tuneTime, time.Duration(float64(tuneTime)*float64(rows)/tuneRows))
		e.add("tune "+s.name, fmt.Sprintf("%d settings in %.1f s: %s for %s", found.Tried, took.Seconds(), units.Bytes(found.Best[0].Peak),
			units.Bytes(found.Usual.Peak)), fmt.Sprintf("%.0f s", limit.Seconds()), took <= limit)
	}
	return nil
}

// tunedPeak is an outcome of gmbench tune.
type tunedPeak struct {
	Peak int64 `json:"peak_reserved_bytes"`
}

// measureReport times the pages of each trace, and weighs them.
func measureReport(e *experiment) error {
	for _, s := range e.traces {
		for _, command := range [][]string{{"bin/gmbench", "report"}, {"bin/gmtrace", "page"}} {
			if err := e.measurePage(command, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// measurePage measures how long a command takes to make a page of a trace, and how large the page is.
func (e *experiment) measurePage(command []string, s sample) error {
	page := filepath.Join(e.dir, s.name+".html")
	took, err := bestOf(func() error {
		_, err := onTwoCores(command[0], command[1], "-o", page, s.trace)
		return err
	})
	if err != nil {
		return err
	}
	info, err := os.Stat(page)
	if err != nil {
		return err
	}
	e.add(command[1]+" "+s.name, fmt.Sprintf("%.1f s, %.2f MB", took.Seconds(), float64(info.Size())/1e6),
		fmt.Sprintf("%.0f s, %d MB", reportTime.Seconds(), reportSize/1_000_000), took <= reportTime && info.Size() <= reportSize)
	return nil
}

// onTwoCores runs a program and returns what it prints.
func onTwoCores(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}

func rowsOf(file string) (int64, error) {
	r, err := trace.Open(file)
	if err != nil {
		return 0, err
	}
	return r.Rows(), r.Close()
}
