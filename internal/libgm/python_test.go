package main

import (
	"os/exec"
	"testing"
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
