package main

import (
	"testing"

	"gm/internal/models/graphs"
)

// TestPools checks that a pool is no smaller than what is in use at once, under a schedule that moves something.
func TestPools(t *testing.T) {
	m, err := graphs.Build("resnet-32,batch=4")
	if err != nil {
		t.Fatal(err)
	}
	run, err := dymemStep(m, "vdnn-all", dymemDevice)
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]func(*dymemRun) (int64, error){"best fit": bestFit, "grouped": grouped, "gmplan": solved} {
		if bytes, err := size(run); err != nil || bytes < run.result.Peak || bytes > 2*run.result.Peak {
			t.Errorf("%s: a pool of %d for a peak of %d: %v", name, bytes, run.result.Peak, err)
		}
	}
	if run.result.Offloads == 0 {
		t.Error("nothing was moved")
	}
}
