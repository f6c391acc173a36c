package capture

import (
	"os/exec"
	"testing"
	"time"
)

// TestLinger records on until the last process ends, without a warning.
func TestLinger(t *testing.T) {
	warned := 0
	s, err := NewSession(Options{Warn: func(string, ...any) { warned++ }})
	if err != nil {
		t.Fatal(err)
	}
	before := warned
	c := exec.Command("sleep", "0.2")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p := quiet(s.folder)
	p.pid, p.life = c.Process.Pid, newLife(c.Process.Pid)
	s.processes = []*process{p}
	began := time.Now()
	ended := make(chan error)
	go func() { ended <- c.Wait() }()
	if s.linger(); warned != before || time.Since(began) < 100*time.Millisecond {
		t.Errorf("%d warnings after %v", warned-before, time.Since(began))
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestStillRun names the process, or one of several.
func TestStillRun(t *testing.T) {
	for want, pids := range map[string][]int{"process 7 still runs": {7}, "2 processes still run, 8 among them": {8, 7}} {
		if got := stillRun(pids); got != want {
			t.Errorf("%v: %s", pids, got)
		}
	}
}
