package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gm/formats/trace"
	"gm/internal/trace/overview"
)

const (
	captureFolder = "experiments/capture"
	capturePairs  = 20_000 // fewer calls than a ring holds records
	captureRounds = 9
	callTarget    = 150.0 // ns
	launchTarget  = 10.0  // ns
	restTarget    = 0.01  // of what NVML says
	othersTarget  = time.Millisecond
)

// measureCapture measures what gmtrace run adds to calls of a driver that does nothing, and compares the accounts of the bundled
// captures with NVML's. What experiments/capture/h200.py found on a GPU is in experiments/capture/h200.csv.
func measureCapture(e *experiment) error {
	if err := measureCalls(e); err != nil {
		return err
	}
	if err := measureOthers(e); err != nil {
		return err
	}
	captures, err := filepath.Glob("testdata/captures/*.parquet")
	if err != nil {
		return err
	}
	for _, file := range captures {
		if err := measureAccount(e, file); err != nil {
			return err
		}
	}
	return nil
}

func measureCalls(e *experiment) error {
	for _, args := range [][]string{
		{"-O2", "-shared", "-fPIC", "-o", filepath.Join(e.dir, "libcuda.so.1"), captureFolder + "/null.c"},
		{"-O2", "-w", "-o", filepath.Join(e.dir, "calls"), captureFolder + "/calls.c", "-ldl"},
	} {
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("gcc %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	calls := []string{filepath.Join(e.dir, "calls"), strconv.Itoa(capturePairs), "image"}
	plain, err := fastest(e.dir, calls)
	if err != nil {
		return err
	}
	traced, err := fastest(e.dir, append([]string{"bin/gmtrace", "run", "-o", filepath.Join(e.dir, "calls.parquet"), "--"}, calls...))
	if err != nil {
		return err
	}
	for i, what := range []string{"cuMemAllocAsync, cuMemFreeAsync", "cuMemAlloc, cuMemFree", "a launch"} {
		target := callTarget
		if i == 2 {
			target = launchTarget
		}
		more := traced[i] - plain[i]
		e.add("gmtrace run adds to a call: "+what, fmt.Sprintf("%.0f ns", more), fmt.Sprintf("%.0f ns", target), more <= target)
	}
	return nil
}

// measureOthers measures what processes pay that never touch CUDA.
func measureOthers(e *experiment) error {
	const script = "for i in $(seq 1000); do /bin/true; done"
	best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	for range captureRounds {
		for i, words := range [][]string{
			{"sh", "-c", script}, {"bin/gmtrace", "run", "-o", filepath.Join(e.dir, "none.parquet"), "--", "sh", "-c", script},
		} {
			start := time.Now()
			if err := exec.Command(words[0], words[1:]...).Run(); err != nil {
				return fmt.Errorf("%s: %w", words[0], err)
			}
			best[i] = min(best[i], time.Since(start))
		}
	}
	more := (best[1] - best[0]) / 1000
	e.add("gmtrace run adds to a process without CUDA", more.String(), othersTarget.String(), more <= othersTarget)
	return nil
}

// fastest runs a program that prints three times, several times, and returns the least of each.
func fastest(driver string, words []string) ([3]float64, error) {
	best := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	for range captureRounds {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+driver)
		out, err := cmd.Output()
		if err != nil {
			return best, fmt.Errorf("%s: %w", words[0], err)
		}
		var now [3]float64
		if _, err := fmt.Sscan(string(out), &now[0], &now[1], &now[2]); err != nil {
			return best, fmt.Errorf("%s printed %q: %w", words[0], out, err)
		}
		for i := range best {
			best[i] = min(best[i], now[i])
		}
	}
	return best, nil
}

func measureAccount(e *experiment, file string) (err error) {
	r, err := trace.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	o, err := overview.Read(r)
	if err != nil {
		return err
	}
	for _, d := range o.Devices {
		if d.Driver == nil || d.Driver.Reconciliation == nil {
			continue
		}
		c := d.Driver.Reconciliation
		e.add(fmt.Sprintf("%s: what NVML says and no row explains", strings.TrimSuffix(filepath.Base(file), ".parquet")),
			fmt.Sprintf("%.2f %% of %.2f GiB", 100*c.Share, float64(c.Used)/(1<<30)), fmt.Sprintf("%.0f %%", 100*restTarget),
			math.Abs(c.Share) <= restTarget)
	}
	return nil
}
