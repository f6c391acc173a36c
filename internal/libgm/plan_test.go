package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// summaryOf reads the summary of the first device that GM_STATS left.
func summaryOf(t *testing.T, path string) deviceSummary {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var s summary
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return s.Devices[0]
}

// TestPlanFound runs a loop, whose iterations must be found, planned and served from the plan.
func TestPlanFound(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/iterations.c")
	stats, log := filepath.Join(t.TempDir(), "stats.json"), filepath.Join(t.TempDir(), "log")
	k.newRun(t, "GM_AUTO=1", "GM_STATS="+stats, "GM_LOG="+log).passes(t, program, "300")
	text, err := os.ReadFile(log)
	if err != nil || strings.Count(string(text), "planned in") != 1 {
		t.Fatalf("log %q, %v", text, err)
	}
	s := summaryOf(t, stats)
	if s.Plan == nil || s.Plan.Followed < 20*s.Plan.Strayed || s.Plan.Followed < 10_000 {
		t.Errorf("plan %+v", s.Plan)
	}
}

// TestIterations tells gm where iterations begin. They must be served from a plan soon, in less memory than without, with hardly a driver call.
func TestIterations(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/iterations.c")
	stats, log := filepath.Join(t.TempDir(), "stats.json"), filepath.Join(t.TempDir(), "log")
	r := k.newRun(t, "GM_STATS="+stats, "GM_LOG="+log)
	r.passes(t, program, "300", "say")
	var recorded, planning, followed, calls int
	if _, err := fmt.Sscan(r.out, &recorded, &planning, &followed, &calls); err != nil || recorded != 2 || followed < 100 {
		t.Errorf("%q is printed: %v", r.out, err)
	}
	s := summaryOf(t, stats)
	if s.Plan == nil || s.Plan.Followed < 100*s.Plan.Strayed || s.Plan.Followed < 100*24*5 {
		t.Errorf("plan %+v", s.Plan)
	}
	if text, err := os.ReadFile(log); err == nil && len(text) > 0 {
		t.Errorf("log %q", text)
	}
}

// TestIterationsFail does so with planners that fail.
func TestIterationsFail(t *testing.T) {
	k := newKit(t)
	loop := k.compile(t, "testdata/iterations.c")
	for script, want := range badPlanners {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			r := k.newRun(t, "GM_LOG="+log, "GM_PLANNER="+program(t, script))
			r.passes(t, loop, "60", "try")
			if text, _ := os.ReadFile(log); !strings.Contains(string(text), want) || want == "" && len(text) > 0 || strings.Count(string(text), "\n") > 1 {
				t.Errorf("%q is said, want %q", text, want)
			}
		})
	}
}

// TestPlanGiven plans an iteration of a recorded run and passes the plan to another run.
func TestPlanGiven(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/iterations.c")
	dir := t.TempDir()
	recorded, planned, stats := filepath.Join(dir, "job.parquet"), filepath.Join(dir, "plan.parquet"), filepath.Join(dir, "stats.json")
	k.newRun(t, "GM_STATS="+recorded).passes(t, program, "12")
	if err := k.tool("go", "run", "gm/tools/gmplan", "--iteration", "auto", "--periodic", "--streams", "separate", recorded, "-o", planned); err != nil {
		t.Fatal(err)
	}
	k.newRun(t, "GM_PLAN="+planned, "GM_STATS="+stats).passes(t, program, "50")
	s := summaryOf(t, stats)
	if s.Plan == nil || s.Plan.Strayed > 50 || s.Plan.Followed < 48*100 {
		t.Errorf("plan %+v", s.Plan)
	}
	log := filepath.Join(dir, "log")
	k.newRun(t, "GM_PLAN="+recorded, "GM_LOG="+log).passes(t, program, "3")
	if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "no plan is followed") {
		t.Errorf("log %q, %v", text, err)
	}
}
