package main

import (
	"os/exec"
	"testing"
)

// TestObjects has a store of objects in C, and by the module of the wheel.
func TestObjects(t *testing.T) {
	k := newKit(t)
	k.newRun(t).passes(t, k.compile(t, "testdata/objects.c"))
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python")
	}
	k.newRun(t, "PYTHONDONTWRITEBYTECODE=1").passes(t, python, "testdata/objects.py", "../../packaging/python")
}
