package gmswap

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// compiled runs testdata/compiled.py with the hook.
func (s *session) compiled(graphs string, env ...string) (stdout, stderr string) {
	s.t.Helper()
	var out, said bytes.Buffer
	c := exec.Command(s.python, "testdata/compiled.py", graphs)
	c.Env = append(append(slices.Clone(s.env), s.hook...), env...)
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		s.t.Fatalf("%v\n%s", err, said.String())
	}
	return out.String(), said.String()
}

// TestCompiled has random graphs ordered. Each must get an order of the least peak of all that keep to its rules, by an estimate that counts
// outputs or does not.
func TestCompiled(t *testing.T) {
	for _, how := range []string{"", "outputs"} {
		t.Run("estimate "+how, func(t *testing.T) {
			t.Parallel()
			out, said := newSession(t).compiled("100", "GMSWAP_ORDER=1", "STUB_INDUCTOR="+how)
			moved, ok := strings.CutPrefix(out, "100 least, ")
			moved, wrong, _ := strings.Cut(moved, " moved, ")
			if !ok || wrong != "0 wrong\n" || moved == "0" {
				t.Errorf("of 100 graphs: %s", out)
			}
			if !strings.HasPrefix(said, "gmswap: order: "+moved+" of 100 compiled graphs run in gm's order; the highest of their peaks is 0.0 MiB") ||
				strings.Count(said, "\n") != 1 {
				t.Errorf("it said %s", said)
			}
		})
	}
}

// TestCompiledFails has a planner fail, and an Inductor be other than is known. The order stays, and a line says why.
func TestCompiledFails(t *testing.T) {
	planner := filepath.Join(t.TempDir(), "planner")
	if err := os.WriteFile(planner, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ env, want string }{
		{"STUB_INDUCTOR=wrong", "gmswap: order: Inductor's order stays: ValueError: Inductor estimates "},
		{"STUB_INDUCTOR=bare", "gmswap: order: Inductor's order stays: AttributeError: 'Node' object has no attribute 'mpi_node'\n"},
		{"STUB_INDUCTOR=older", "gmswap: order: this PyTorch's Inductor does not order nodes by memory: nothing is reordered\n"},
		{"GM_PLANNER=" + planner, "gmswap: order: Inductor's order stays: Failure: the planner ended before it answered: exit status 3\n"},
		{"GMSWAP_ORDER=", ""},
	} {
		t.Run(c.env, func(t *testing.T) {
			t.Parallel()
			out, said := newSession(t).compiled("2", "GMSWAP_ORDER=1", c.env)
			if !strings.HasSuffix(out, " 0 moved, 0 wrong\n") || !strings.HasPrefix(said, c.want) || c.want == "" && said != "" {
				t.Errorf("%s, and it said %q, want %q", out, said, c.want)
			}
		})
	}
}
