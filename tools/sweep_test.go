package tools

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// matrix has 24 tasks, each of some tens of milliseconds or more.
const matrix = `{"synth": [{"job": "llama-7b,layers=16,batch=1,seq=128", "strategy": "R", "steps": 12}, {"job": "opt-1.3b,batch=2,seq=64..256", "strategy": "LR", "steps": 12}],
	"allocators": ["torch", "expandable", "stitch"], "capacities": ["1GiB", "4GiB", "20GiB", "80GiB"]}`

// TestKilledSweep kills all processes of a sweep again and again while two tasks run. What is merged at the end is what one process finds.
func TestKilledSweep(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.json"), []byte(matrix), 0o666); err != nil {
		t.Fatal(err)
	}
	sh := func(script string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		return cmd
	}
	const both = "gmbench sweep s.json -d killed --list | xargs -P 2 -I N gmbench sweep s.json -d killed --task N"
	kills := 0
	for range 4 {
		before := results(t, dir)
		cmd := sh(both)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); results(t, dir) < before+4 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if cmd.Wait() != nil && results(t, dir) < 24 {
			kills++
		}
	}
	if kills == 0 {
		t.Fatal("the sweep was never killed before its end")
	}
	if out, err := sh("gmbench merge s.json -d killed").CombinedOutput(); results(t, dir) < 24 && err == nil {
		t.Errorf("merged while results are missing:\n%s", out)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "gm-*")); err != nil || len(left) > 0 {
		t.Errorf("tasks that were killed left %q, %v", left, err)
	}
	want := mustRun(t, sh("gmbench sweep s.json -d alone && gmbench merge s.json -d alone"))
	example, err := filepath.Abs("../docs/examples/sweep.mk")
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, sh("make -s -j 2 -f "+example+" SPEC=s.json RESULTS=made"))
	if made := mustRun(t, sh("cat table.csv")); !bytes.Equal(made, want) {
		t.Errorf("by make:\n%s\nwant:\n%s", made, want)
	}
	got := mustRun(t, sh(both+" && gmbench merge s.json -d killed"))
	if !bytes.Equal(got, want) || bytes.Count(got, []byte("\n")) != 25 {
		t.Errorf("killed %d times, merged:\n%s\nwant:\n%s", kills, got, want)
	}
}

// results returns how many results the folder of the killed sweep has.
func results(t *testing.T, dir string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "killed", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func mustRun(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd.Args, err)
	}
	return out
}
