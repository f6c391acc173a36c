package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// splitResults is what experiments/fleet/parallel.sh printed of jobs of two H200s under limits in which states of parameters that ranks share may have to leave.
const splitResults = "experiments/fleet/results/states-swap-h200x2.txt"

// splitWarmUp is how many steps are left out of medians: those in which all is new.
const splitWarmUp = 4

// splitRun is what a rank of a job said at its end.
type splitRun struct {
	Allocated, Reserved int64
	Last                float64   // loss
	Steps               []float64 // seconds
}

// step returns the median step, in seconds.
func (r splitRun) step() float64 {
	later := slices.Sorted(slices.Values(r.Steps[splitWarmUp:]))
	return (later[(len(later)-1)/2] + later[len(later)/2]) / 2
}

// measureSplit adds memory and steps of jobs whose parameters ranks share, beside PyTorch's.
func measureSplit(e *experiment) error {
	text, err := os.ReadFile(splitResults)
	if err != nil {
		return err
	}
	for _, job := range []struct {
		kind, name string
		share      int64 // percent of what plain PyTorch had allocated
	}{{"gqa", "Llama with split matrices and words", 60}, {"dp", "Llama under FSDP2", 55}} {
		var runs [2]splitRun
		for i, run := range []string{job.kind + ", 10 steps", job.kind + " under gmswap"} {
			if runs[i], err = readSplit(text, run); err != nil {
				return fmt.Errorf("read %s: %w", splitResults, err)
			}
		}
		plain, swapped := runs[0], runs[1]
		e.add(fmt.Sprintf("%s, two H200s, gmswap %d %%", job.name, job.share),
			fmt.Sprintf("%.2f GB of %.2f; steps %.3f s for %.3f; last losses %.6f and %.6f", float64(swapped.Reserved)/1e9, float64(plain.Allocated)/1e9, swapped.step(),
				plain.step(), swapped.Last, plain.Last),
			"ends within it", 100*swapped.Reserved <= job.share*plain.Allocated)
	}
	return nil
}

// readSplit returns what the first rank to end of a run said.
func readSplit(text []byte, run string) (splitRun, error) {
	var r splitRun
	_, text, ran := bytes.Cut(text, []byte("== "+run+": "))
	if !ran {
		return r, fmt.Errorf("no run %q", run)
	}
	for line := range strings.Lines(string(text)) {
		if said, ok := strings.CutPrefix(line, "RESULT "); ok {
			if err := json.Unmarshal([]byte(said), &r); err != nil {
				return r, fmt.Errorf("run %q: %w", run, err)
			}
			if len(r.Steps) <= splitWarmUp {
				return r, fmt.Errorf("run %q has %d steps", run, len(r.Steps))
			}
			return r, nil
		}
	}
	return r, fmt.Errorf("run %q says nothing", run)
}
