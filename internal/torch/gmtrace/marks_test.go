package gmtrace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// marked returns the number of marks of a process, whose times must not decrease.
func (s *session) marked(pid int) int {
	s.t.Helper()
	last := int64(0)
	lines := strings.Split(strings.TrimSuffix(s.read(fmt.Sprintf("marks.%d", pid)), "\n"), "\n")
	for _, line := range lines {
		var ns int64
		var text string
		if n, err := fmt.Sscan(line, &ns, &text); n != 2 || err != nil || text != "step" || ns < last {
			s.t.Errorf("mark %q after %d", line, last)
		}
		last = ns
	}
	return len(lines)
}

func TestMarks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const training = `
import functools

def loop(x):
    "A step."
    return x + 1

class Trainer(object):
    def step(self): return 2
    @staticmethod
    def static(): return 3
    @classmethod
    def whole(cls): return cls
`
	if err := os.WriteFile(filepath.Join(dir, "training.py"), []byte(training), 0o644); err != nil {
		t.Fatal(err)
	}
	const program = `
optimizer.step()
step(1)
for i in range(300):
    optimizer.step()
assert training.loop(1) == 2 and training.loop.__doc__ == "A step."
assert training.Trainer().step() == 2 and training.Trainer().step() == 2
assert training.Trainer.static() == 3 and training.Trainer.whole() is training.Trainer
`
	for _, imports := range []string{"import training\n" + busy, busy + "import training\n"} {
		for marks, want := range map[string]int{
			"": 300, "training:loop": 1, "training:Trainer.step": 2, "training:Trainer.static": 1, "training:Trainer.whole": 1,
		} {
			s := newSession(t, "", "GMTRACE_MARKS="+marks)
			s.env[1] += ":" + dir
			r := s.ok(imports + program)
			if n := s.marked(r.pid); n != want {
				t.Errorf("%q: %d marks, want %d", marks, n, want)
			}
		}
	}
	s := newSession(t, "", "GMTRACE_MARKS=training:nothing")
	s.env[1] += ":" + dir
	if r := s.run(busy + "import training\n" + program); r.code != 0 || strings.Count(r.stderr, "\n") != 1 ||
		!strings.HasPrefix(r.stderr, "gmtrace: --marks training:nothing: the module has no such function") {
		t.Errorf("%+v", r)
	}
}

func TestMarksAtImmediateExit(t *testing.T) {
	t.Parallel()
	s := newSession(t, "")
	r := s.ok(busy + "step(1)\nfor i in range(600):\n    optimizer.step()\nos._exit(0)\n")
	if n := s.marked(r.pid); n != 512 {
		t.Errorf("%d marks", n)
	}
}

// TestSteps records some of ten steps, in each of which sizes tell the step.
func TestSteps(t *testing.T) {
	t.Parallel()
	const program = busy + `
for i in range(10):
    for j in range(200):
        torch.empty_bytes(1000000 + i)
        if j % 20 == 0: time.sleep(0.002)
    optimizer.step()
`
	for steps, want := range map[string][2]int64{"3:6": {3, 6}, "0:2": {0, 2}, "8:99": {8, 10}, "20:30": {}, "": {0, 10}, "x": {0, 10}} {
		s := newSession(t, "", "GMTRACE_STEPS="+steps, "GMTRACE_HISTORY=8000")
		r := s.ok(program)
		counts := map[int64]int{}
		for _, e := range s.recorded(r.pid)[0] {
			if e.Action == "alloc" {
				counts[e.Size-1000000]++
			}
		}
		for i := range int64(10) {
			n := 0
			if want[0] <= i && i < want[1] {
				n = 200
			}
			if counts[i] != n {
				t.Errorf("%q: %d allocs of step %d, want %d", steps, counts[i], i, n)
			}
		}
		if n := s.marked(r.pid); n != 10 {
			t.Errorf("%d marks", n)
		}
	}
}
