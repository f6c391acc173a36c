package capture

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"gm/internal/capture/ring"
)

// viewed is a process of a view: one that began at a time, with a rank, and uses CUDA if that is not 0.
func viewed(t *testing.T, pid, rank int, startNS int64, dead bool) *process {
	t.Helper()
	p := quiet(t.TempDir())
	p.pid, p.live.startNS, p.life = pid, startNS, life{pid: pid, fd: -1, gone: dead}
	if !dead {
		p.life = newLife(os.Getpid())
		t.Cleanup(func() { _ = p.life.close() })
	}
	if startNS > 0 {
		p.header = &ring.Header{Rank: rank, WorldSize: 2, StartNS: startNS}
	}
	return p
}

// TestView has the running processes by rank and start, unknown ranks last, then those that have ended, the latest first, and no more of them than so many.
func TestView(t *testing.T) {
	s := newSession(Options{Output: "/o/%p"}, t.TempDir())
	s.cards = &cards{}
	s.processes = []*process{
		viewed(t, 1, -1, 10, false), viewed(t, 2, 1, 40, false), viewed(t, 3, 0, 0, false), viewed(t, 4, 1, 30, false), viewed(t, 5, 0, 50, false),
		viewed(t, 6, 0, 0, true), viewed(t, 7, 0, 5, true), viewed(t, 8, 0, 5, true),
	}
	numbers := func() (pids []int) {
		for _, p := range s.View().Processes {
			if want := fmt.Sprintf("/o/%d", p.PID); p.Output != want || p.Ended != (p.PID > 6) {
				t.Errorf("process %d: output %q, ended %v", p.PID, p.Output, p.Ended)
			}
			pids = append(pids, p.PID)
		}
		return pids
	}
	if got := numbers(); !slices.Equal(got, []int{5, 4, 2, 1, 8, 7}) {
		t.Errorf("processes %v", got)
	}
	if got := s.alive(); !slices.Equal(got, []int{1, 2, 3, 4, 5}) {
		t.Errorf("alive %v", got)
	}
	for range maxEnded - 1 {
		s.processes = append(s.processes, viewed(t, 9, 0, 5, true))
	}
	if v := s.View(); len(v.Processes) != 4+maxEnded || v.Omitted != 1 {
		t.Errorf("%d processes, %d omitted", len(v.Processes), v.Omitted)
	}
	if s.options.Output = ""; s.View().Processes[0].Output != "" {
		t.Error("an output without a name")
	}
}

// TestViewOfProcess has what is known of a process's history, counters and devices.
func TestViewOfProcess(t *testing.T) {
	p := viewed(t, 1, 0, 10, true)
	p.counters, p.greeting.History = ring.Counters{Waits: 1, WaitedNS: 2, Lost: 3}, "on"
	if v := p.view(1, &cards{}); v.History != "on" || v.Waits != 1 || v.WaitedNS != 2 || v.Lost != 3 || len(v.Devices) != 0 {
		t.Errorf("%+v", v)
	}
	p.failed = fmt.Errorf("odd")
	p.interpreter.take(&ring.Record{Kind: ring.Device, C: 9})
	p.interpreter.take(&ring.Record{Kind: ring.Alloc, A: 1, B: 5})
	v := p.view(1, &cards{})
	if v.History != "ended: odd" || len(v.Devices) != 1 || v.Devices[0].Total != 9 || v.Devices[0].Used != 0 || v.Devices[0].Driver.Live != 5 {
		t.Errorf("%+v", v)
	}
}

// TestLineCounter counts the lines of a file that grows, once each.
func TestLineCounter(t *testing.T) {
	name := t.TempDir() + "/lines"
	var l lineCounter
	for _, c := range []struct {
		text string
		want int64
	}{{"a\nb", 1}, {"a\nb\n", 2}, {"a\nb\n", 2}, {"a\nb\nc\n\n", 4}} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := l.count(name); got != c.want {
			t.Errorf("%q: %d lines, want %d", c.text, got, c.want)
		}
	}
	if got := l.count(name + "none"); got != 4 {
		t.Errorf("the file is gone: %d lines", got)
	}
}
