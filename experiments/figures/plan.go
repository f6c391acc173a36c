package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gm/formats/trace"
	"gm/internal/plan/layout"
)

// A plan may exceed its lower bound by so much, and take so long: that of a trace of over a million rows the second time, that of an
// iteration the third.
const (
	planExcess        = 0.0005
	planTime          = 2 * time.Second
	planTimeLong      = 10 * time.Second
	planTimeIteration = time.Second
	planLongRows      = 1_000_000
	planSearch        = "5s" // for each arena
)

// measurePlan runs gmplan on every trace, and on an iteration of each that has any.
func measurePlan(e *experiment) error {
	for _, s := range e.traces {
		rows, iterations, err := size(s.trace)
		if err != nil {
			return err
		}
		limit := planTime
		if rows > planLongRows {
			limit = planTimeLong
		}
		if err := e.plan("plan "+s.name, s, limit); err != nil {
			return err
		}
		name := fmt.Sprintf("plan %s, one of %d iterations", s.name, iterations)
		if iterations == 0 {
			e.table.Add("plan "+s.name+", an iteration", "there are none", "", "not measured")
		} else if err := e.plan(name, s, planTimeIteration, "--iteration", "auto"); err != nil {
			return err
		}
	}
	return nil
}

// size returns how many rows a trace has, and iterations.
func size(file string) (rows int64, iterations int, err error) {
	r, err := trace.Open(file)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	tensors, err := layout.Collect(r)
	if err != nil {
		return 0, 0, err
	}
	return r.Rows(), len(tensors.Iterations()), nil
}

// plan runs gmplan, then the independent checker on the plan.
func (e *experiment) plan(name string, s sample, limit time.Duration, args ...string) error {
	file := filepath.Join(e.dir, s.name+".plan.parquet")
	took, err := bestOf(func() error {
		return gmplan(append([]string{"layout", s.trace, "-o", file, "--time", planSearch}, args...)...)
	})
	if err != nil {
		return err
	}
	if err := gmplan("check", file, s.trace); err != nil {
		return err
	}
	var shown struct {
		Peak  int64 `json:"peak_bytes"`
		Bound int64 `json:"lower_bound_bytes"`
	}
	out, err := exec.Command("bin/gmplan", "show", "--json", file).Output()
	if err != nil {
		return fmt.Errorf("gmplan show %s: %w", file, err)
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		return fmt.Errorf("gmplan show %s: %w", file, err)
	}
	ratio := float64(shown.Peak) / float64(shown.Bound)
	e.add(name, fmt.Sprintf("%.5f of the bound, %.2f s", ratio, took.Seconds()),
		fmt.Sprintf("%.4f, %s", 1+planExcess, limit), ratio <= 1+planExcess && took <= limit)
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
