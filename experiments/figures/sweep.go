package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// sweepMatrix has 32 tasks of some 0.7 seconds each.
const sweepMatrix = `{"synth": [
	{"job": "llama-7b,batch=1,seq=512..2Ki", "strategy": "RV", "steps": 96}, {"job": "opt-13b,batch=2,seq=256..1Ki", "strategy": "LRV", "steps": 96}],
	"allocators": ["torch", "expandable", "stitch", "torch:max_split_size_mb=128"], "capacities": ["20GiB", "40GiB", "80GiB", "140GiB"]}`

// Two tasks at a time on two cores are to be so many times as fast as one. The best of so many runs of each counts, because the machine may
// have other work.
const (
	sweepSpeedUp = 1.9
	sweepRuns    = 3
)

// measureSweep measures a sweep with two tasks at a time against one, each with a core.
func measureSweep(e *experiment) error {
	spec := filepath.Join(e.dir, "sweep.json")
	if err := os.WriteFile(spec, []byte(sweepMatrix), 0o666); err != nil {
		return err
	}
	best := [2]time.Duration{}
	for range sweepRuns {
		for i := range best {
			took, err := e.sweep(spec, i+1)
			if err != nil {
				return err
			}
			if best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	factor := best[0].Seconds() / best[1].Seconds()
	e.add("sweep, 32 tasks, two at a time", fmt.Sprintf("%.2f times as fast: %.1f s, one at a time %.1f s", factor, best[1].Seconds(), best[0].Seconds()),
		fmt.Sprintf("%g", sweepSpeedUp), factor >= sweepSpeedUp)
	return nil
}

// sweep runs a matrix with n tasks at a time.
func (e *experiment) sweep(spec string, n int) (time.Duration, error) {
	results := filepath.Join(e.dir, "results")
	if err := os.RemoveAll(results); err != nil {
		return 0, err
	}
	cmd := exec.Command("sh", "-c", `bin/gmbench sweep "$0" -d "$1" --list | xargs -P "$2" -I N bin/gmbench sweep "$0" -d "$1" --task N`, spec, results, fmt.Sprint(n))
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOMAXPROCS=1"), os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("sweep with %d tasks at a time: %w", n, err)
	}
	return time.Since(start), nil
}
