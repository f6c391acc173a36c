package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gm/internal/blocks"
	"gm/internal/libgm/planner/wire"
)

// badPlanners are scripts of planners that fail, each with the expected message. The test does not wait for those that hang.
var badPlanners = map[string]string{
	"exit 3":                            "the planner ended before it answered: exit status 3",
	"sleep 0.1; kill -KILL $$":          "the planner ended before it answered: signal: killed",
	"echo these are only words":         "not a message of gm",
	"cat /dev/zero":                     "not a message of gm",
	"printf 'gmpl\\001\\000\\004\\000'": "ended before it answered",
	"exec sleep 60":                     "",
}

// program makes a script.
func program(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "planner")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// goesOn runs a job whose planner fails, checks that it works as without a planner, and returns its messages.
func goesOn(t *testing.T, env ...string) string {
	t.Helper()
	k := newKit(t)
	dir := t.TempDir()
	stats, log := filepath.Join(dir, "stats.json"), filepath.Join(dir, "log")
	begin := time.Now()
	k.newRun(t, append(env, "GM_STATS="+stats, "GM_LOG="+log)...).passes(t, k.compile(t, "testdata/iterations.c"), "60")
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("the job took %v", took)
	}
	if s := summaryOf(t, stats); s.Plan == nil || s.Plan.Followed != 0 || s.Account.OOMs != 0 || s.Account.Allocation[0].Freed != 60*24*7+10 {
		t.Errorf("plan %+v, account %+v", s.Plan, s.Account)
	}
	text, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// TestPlannerFails runs jobs whose planner ends, is killed, answers something that is not a plan, or hangs. Each must go on without a
// plan and report why in one line.
func TestPlannerFails(t *testing.T) {
	for script, want := range badPlanners {
		for _, how := range []string{"GM_AUTO=1", "GM_PLAN=/some/plan"} {
			t.Run(how+" "+script, func(t *testing.T) {
				t.Parallel()
				said := goesOn(t, how, "GM_PLANNER="+program(t, script))
				if how != "GM_AUTO=1" && want == "" {
					want = "the plan takes longer than 2s"
				}
				if !strings.Contains(said, want) || want == "" && said != "" || strings.Count(said, "\n") > 1 {
					t.Errorf("%q is said, want %q", said, want)
				}
			})
		}
	}
}

// TestPlannerAbsent runs jobs without a planner.
func TestPlannerAbsent(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, env := range map[string][]string{
		"there is no planner: use gmstitch run":       {"GM_AUTO=1", "GM_PLANNER="},
		"no planner: use gmstitch run":                {"GM_PLAN=/some/plan", "GM_PLANNER="},
		"the run that it belongs to may have ended":   {"GM_AUTO=1", "GM_PLANNER=/nosuch/planner"},
		"permission denied":                           {"GM_AUTO=1", "GM_PLANNER=" + t.TempDir()},
		fifo + " is not a regular file":               {"GM_PLAN=" + fifo},
		"read /: is a directory; no plan is followed": {"GM_PLAN=/some/plan", "GM_PLANNER=" + program(t, "echo 'read /: is a directory' >&2; exit 1")},
	} {
		if said := goesOn(t, env...); !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%q is said, want %q", said, want)
		}
	}
}

// TestSocketFails makes the other end of a socket send invalid answers.
func TestSocketFails(t *testing.T) {
	overlapping := &blocks.Cycle{Arenas: []int64{1 << 30}, Proven: true}
	for range 24 * 7 {
		overlapping.Steps = append(overlapping.Steps, blocks.Step{Size: 512, Lasts: 24 * 7})
	}
	var bad, text bytes.Buffer
	err := errors.Join(wire.Write(&bad, wire.Message{Kind: wire.Cycle, Body: wire.AppendCycle(nil, overlapping)}),
		wire.Write(&text, wire.Message{Kind: wire.Schedule, Body: []byte("{}")}))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		answer string
		want   string
	}{
		{"", "ended before it answered"},
		{"only words are answered here", "not a message of gm"},
		{bad.String(), "is not a plan: step 1 overlaps step 0"},
		{bad.String()[:200], "ended before it answered"},
		{text.String(), "of kind 5, expected 4"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "socket")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					s, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = wire.Read(s)
					_, _ = io.WriteString(s, c.answer)
					s.Close()
				}
			}()
			if said := goesOn(t, "GM_AUTO=1", "GM_PLANNER="+path); !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 {
				t.Errorf("%q is said, want %q", said, c.want)
			}
		})
	}
}

// TestBeside lets the gmstitch in the folder of libgm.so plan.
func TestBeside(t *testing.T) {
	k := newKit(t)
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(k.library())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "libgm.so"), data, 0o700), os.Symlink(self, filepath.Join(dir, "gmstitch"))); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	r := k.newRun(t, "GM_AUTO=1", "GM_PLANNER=", "GM_LOG="+log)
	r.env = append(r.env, "LD_LIBRARY_PATH="+dir+":"+k.fake.Dir)
	r.passes(t, k.compile(t, "testdata/iterations.c"), "300")
	if text, err := os.ReadFile(log); err != nil || strings.Count(string(text), "planned in") != 1 {
		t.Fatalf("log %q, %v", text, err)
	}
}
