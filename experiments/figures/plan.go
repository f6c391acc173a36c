package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A plan may exceed its lower bound by so much, and take so long. The second time is for traces of over a million rows.
const (
	planExcess   = 0.01
	planTime     = 2 * time.Second
	planTimeLong = 10 * time.Second
	planLongRows = 1_000_000
)

// measurePlan runs gmplan on every trace, then the independent checker on the plan.
func measurePlan(e *experiment) error {
	for _, s := range e.traces {
		plan := filepath.Join(e.dir, s.name+".plan.parquet")
		took, err := bestOf(func() error { return gmplan("layout", s.trace, "-o", plan) })
		if err != nil {
			return err
		}
		if err := gmplan("check", plan, s.trace); err != nil {
			return err
		}
		var shown struct {
			Peak  int64 `json:"peak_bytes"`
			Bound int64 `json:"lower_bound_bytes"`
			Rows  int64 `json:"rows"`
		}
		out, err := exec.Command("bin/gmplan", "show", "--json", plan).Output()
		if err != nil {
			return fmt.Errorf("gmplan show %s: %w", plan, err)
		}
		if err := json.Unmarshal(out, &shown); err != nil {
			return fmt.Errorf("gmplan show %s: %w", plan, err)
		}
		limit := planTime
		if shown.Rows > planLongRows {
			limit = planTimeLong
		}
		ratio := float64(shown.Peak) / float64(shown.Bound)
		e.add("plan "+s.name, fmt.Sprintf("%.5f of the bound, %.2f s", ratio, took.Seconds()),
			fmt.Sprintf("%.2f, %s", 1+planExcess, limit), ratio <= 1+planExcess && took <= limit)
	}
	return nil
}

// tries is how often a command is timed: other users of the machine can make one run take many times as long.
const tries = 3

// bestOf returns the shortest time that a command takes.
func bestOf(command func() error) (time.Duration, error) {
	best := time.Duration(math.MaxInt64)
	for range tries {
		start := time.Now()
		if err := command(); err != nil {
			return 0, err
		}
		best = min(best, time.Since(start))
	}
	return best, nil
}

func gmplan(args ...string) error {
	cmd := exec.Command("bin/gmplan", args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("gmplan %v: %w", args, err)
	}
	return nil
}
