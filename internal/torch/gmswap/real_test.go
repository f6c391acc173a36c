package gmswap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReal trains small models on the CPU with a PyTorch that is installed, and with copies that are made up.
func TestReal(t *testing.T) {
	home := t.TempDir()
	if err := Install(home); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(home, "sitecustomize.py")); err != nil { // it takes the folder out of the path
		t.Fatal(err)
	}
	var planner []string
	if k := shared(); k.err == nil {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		planner = []string{"GM_LIB=" + k.library(), "GM_PLANNER=" + self}
	}
	found := false
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		python, err := exec.LookPath(name)
		if err != nil || exec.Command(python, "-c", "import torch.nn").Run() != nil {
			continue
		}
		found = true
		t.Run(strings.ReplaceAll(python, "/", "_"), func(t *testing.T) {
			t.Parallel()
			testdata, err := filepath.Abs("testdata")
			if err != nil {
				t.Fatal(err)
			}
			for _, tests := range []string{
				"real.py", "real_operators.py", "real_origins.py", "real_arguments.py", "real_small.py", "real_complete.py", "real_early.py", "real_states.py", "real_shared.py", "real_demand.py", "real_family.py", "real_buckets.py", "real_alone.py", "real_selected.py", "real_crowded.py",
				"real_remembered.py", "real_between.py", "real_partition.py", "real_uses.py", "real_models.py", "real_calls.py", "real_second.py", "real_unseen.py", "real_home.py", "real_weights.py", "real_recorded.py", "real_split.py", "real_kinds.py",
			} {
				c := exec.Command(python, filepath.Join(testdata, tests))
				c.Env = append(append(c.Environ(), "PYTHONPATH="+home, "PYTHONDONTWRITEBYTECODE=1"), planner...)
				out, err := c.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", tests, err, out)
				}
				t.Logf("%s: %s", tests, out)
			}
		})
		if python == "/usr/bin/python3" {
			break
		}
	}
	if !found {
		t.Skip("no PyTorch")
	}
}
