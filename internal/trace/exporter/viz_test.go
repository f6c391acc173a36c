package exporter

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// noViz is viz.py's exit status if there is no PyTorch with memory_viz.
const noViz = 77

// TestMemoryViz checks that PyTorch's memory_viz, if installed, reads exported snapshots.
func TestMemoryViz(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	args := []string{"testdata/viz.py"}
	for name, load := range recordings(t) {
		if !strings.HasPrefix(name, "snapshots/") {
			continue
		}
		data, _ := load(t).written(t, Pickle)
		path := filepath.Join(t.TempDir(), "snapshot.pickle")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	out, err := exec.Command(python, args...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == noViz {
		t.Skip("no PyTorch that has a memory_viz")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
