package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"gm/internal/torch/gmstitch"
)

func TestPython(t *testing.T) {
	k := newKit(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python")
	}
	for _, allocator := range allocators {
		t.Run(allocator, func(t *testing.T) {
			t.Parallel()
			k.newRun(t, "GM_ALLOC="+allocator).passes(t, python, "testdata/program.py")
		})
	}
}

// TestCuPy runs a program of CuPy's by gmstitch's hook.
func TestCuPy(t *testing.T) {
	k := newKit(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python")
	}
	stub, err := filepath.Abs("../torch/gmstitch/testdata/stub")
	if err != nil {
		t.Fatal(err)
	}
	for _, allocator := range allocators {
		t.Run(allocator, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := gmstitch.Install(dir); err != nil {
				t.Fatal(err)
			}
			r := k.newRun(t, "GM_ALLOC="+allocator, "GMSTITCH_DIR="+dir, "GMSTITCH_CUPY=1", "PYTHONPATH="+dir+":"+stub, "PYTHONDONTWRITEBYTECODE=1",
				"PYTHONWARNINGS=ignore::DeprecationWarning", "GM_FAKE_CAPACITY=8589934592", "STUB_CUPY_TOTAL=8589934592")
			r.passes(t, python, "testdata/cupy_program.py")
		})
	}
}
