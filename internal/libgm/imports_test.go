package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImports keeps what makes plans, and what reads their files, out of the processes of a job.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		for _, outside := range []string{
			"gm/formats/plan", "gm/formats/graph", "gm/formats/schedule", "gm/internal/bench", "gm/internal/dsa", "gm/internal/models", "gm/internal/plan",
			"gm/internal/swap/answer", "gm/internal/swap/link", "gm/internal/swap/papers", "gm/internal/swap/policy", "gm/internal/swap/scheduling",
			"gm/internal/swap/simulate", "gm/internal/swap/store", "net",
		} {
			if name == outside || strings.HasPrefix(name, outside+"/") {
				t.Errorf("libgm.so holds %s: what makes plans runs in the planner (package planner)", name)
			}
		}
	}
	if !strings.Contains(string(out), "gm/internal/libgm/planner/client") {
		t.Errorf("go list shows %s", out)
	}
}
