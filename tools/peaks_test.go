package tools

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPeaks compares what the tools say a program takes at its peak. Of a trace gmtrace show counts what was requested, and gmplan's bound is that
// with --align 1; otherwise it is the sum of sizes rounded up, as the floor in gmbench is. Of a graph gmplan show, gmplan step's bound and
// gmswap simulate are the same, unless tensors may be written over others, which gmplan show alone counts.
func TestPeaks(t *testing.T) {
	dependOnSources(t)
	for _, name := range found(t, "../testdata/*.parquet") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			shown := number(t, "gmtrace", "peak_live_bytes", "show", "--json", name)
			if bound := planned(t, "--align", "1", name); bound != shown {
				t.Errorf("gmtrace show: %d bytes, gmplan --align 1: %d", shown, bound)
			}
			bound := planned(t, name)
			if floor := number(t, "gmbench", "peak_allocated_bytes", "--json", "--alloc", "floor", name); floor != bound || bound < shown {
				t.Errorf("gmtrace show: %d bytes, gmplan: %d, gmbench: %d", shown, bound, floor)
			}
		})
	}
	for _, name := range append(found(t, "../testdata/graphs/*.parquet"), found(t, "../testdata/steps/*.parquet")...) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			shown := number(t, "gmplan", "peak_bytes", "show", "--json", name)
			step := planned(t, "step", "--align", "1", "--solver", "skyline-A", name)
			simulated := number(t, "gmswap", "peak_bytes", "simulate", "--json", name)
			over := strings.HasSuffix(name, "-over.parquet")
			if step != simulated || shown > step || shown < step && !over {
				t.Errorf("gmplan show: %d bytes, gmplan step: %d, gmswap simulate: %d", shown, step, simulated)
			}
		})
	}
}

// found lists the files of a pattern, of which there must be some.
func found(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(names), err)
	}
	return names
}

// planned returns the lower bound of the plan that gmplan makes with the given arguments.
func planned(t *testing.T, args ...string) int64 {
	t.Helper()
	plan := filepath.Join(t.TempDir(), "plan.parquet")
	if text, err := exec.Command("gmplan", append(args, "-o", plan)...).CombinedOutput(); err != nil {
		t.Fatalf("gmplan %s: %v: %s", strings.Join(args, " "), err, text)
	}
	return number(t, "gmplan", "lower_bound_bytes", "show", "--json", plan)
}

// number runs a tool that prints JSON, and returns the first number of that name in it.
func number(t *testing.T, tool, name string, args ...string) int64 {
	t.Helper()
	text, err := exec.Command(tool, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", tool, strings.Join(args, " "), err)
	}
	_, rest, ok := strings.Cut(string(text), `"`+name+`":`)
	if !ok {
		t.Fatalf("%s %s: no %s in %.200s", tool, strings.Join(args, " "), name, text)
	}
	var value json.Number
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&value); err != nil {
		t.Fatalf("%s %s: %s: %v", tool, strings.Join(args, " "), name, err)
	}
	n, err := value.Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}
