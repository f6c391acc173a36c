package main

import (
	"os/exec"
	"strings"
	"testing"

	serving "gm/internal/swap/server"
)

// TestKeys has processes share memory by keys: the first makes it, the second finds it after the end of the first by SIGKILL, and on the card
// it takes its bytes once.
func TestKeys(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/keys.c")
	m := serveJobs(t, serving.Settings{})
	r := k.newRun(t, "GM_SERVER="+m.path)
	first := r.interactive(t, program, "weights", "hold")
	first.line(t, "made")
	second := r.interactive(t, program, "weights", "hold")
	second.line(t, "found")
	if all := m.Shares(); len(all) != 1 || all[0].Amount != 2 || all[0].Cards[0].Here != 4<<20 || all[0].TextText() != "weights" {
		t.Fatalf("%+v", all)
	}
	if n := r.counts(t).Physical.Total; n != 4<<20 {
		t.Errorf("two processes took %d bytes, want those of one", n)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the first", func() bool { return m.Shares()[0].Amount == 1 })
	second.say(t)
	if err := second.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, second.err)
	}
	third := r.do(t, program, "weights")
	if third.rc != 0 || third.out != "found\n" {
		t.Errorf("exit %d\n%s%s", third.rc, third.out, third.err)
	}
	m.stop()
	alone := r.do(t, program, "weights")
	if alone.rc != 2 || !strings.Contains(alone.out, "start one with gmswap serve") {
		t.Errorf("without a server: exit %d\n%s%s", alone.rc, alone.out, alone.err)
	}
}

// TestSafetensors loads files by the module of the wheel: good ones, and such as are none.
func TestSafetensors(t *testing.T) {
	k := newKit(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python")
	}
	m := serveJobs(t, serving.Settings{})
	k.newRun(t, "GM_SERVER="+m.path, "PYTHONDONTWRITEBYTECODE=1").passes(t, python, "testdata/keys/load.py", "../../packaging/python", t.TempDir())
	if n := len(m.Shares()); n != 3 {
		t.Errorf("%d keys are shared, want 3", n)
	}
}
