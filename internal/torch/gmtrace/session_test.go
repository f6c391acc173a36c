package gmtrace

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gm/internal/torch/pythons"
)

// session is a folder to record into, and how Python programs are run so that they do.
type session struct {
	t      *testing.T
	python string
	dir    string // GMTRACE_DIR
	home   string // of the hook
	logs   string // of the stub
	env    []string
}

// eachPython runs a test in all interpreters, with a session each.
func eachPython(t *testing.T, test func(*session)) {
	t.Helper()
	pythons.Each(t, func(t *testing.T, python string) {
		t.Parallel()
		test(newSession(t, python))
	})
}

// newSession starts a session; without a python it takes the first one.
func newSession(t *testing.T, python string, env ...string) *session {
	t.Helper()
	if python == "" {
		python = pythons.All(t)[0]
	}
	stub, err := filepath.Abs("testdata/stub")
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, python: python, dir: t.TempDir(), home: t.TempDir(), logs: t.TempDir()}
	if err := Install(s.home); err != nil {
		t.Fatal(err)
	}
	s.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "PYTHONPATH=" + s.home + ":" + stub, "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONWARNINGS=ignore::DeprecationWarning", // of forks beside threads, of which CUDA has its own
		"GMTRACE_DIR=" + s.dir, "STUB_TORCH_LOG=" + s.logs,
	}, env...)
	return s
}

// result is what a program left behind.
type result struct {
	pid            int
	code           int // -1 when a signal ended it
	state          string
	stdout, stderr string
}

// run runs a program to its end.
func (s *session) run(program string, env ...string) result {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "main.py")
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		s.t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	c := exec.Command(s.python, file)
	c.Env = append(slices.Clone(s.env), env...)
	c.Stdout, c.Stderr = &stdout, &stderr
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	limit := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer limit.Stop()
	err := c.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return result{c.Process.Pid, c.ProcessState.ExitCode(), c.ProcessState.String(), stdout.String(), stderr.String()}
}

// ok runs a program that must end well and print nothing on standard error.
func (s *session) ok(program string, env ...string) result {
	s.t.Helper()
	r := s.run(program, env...)
	if r.code != 0 || r.stderr != "" {
		s.t.Fatalf("%s, standard error:\n%s", r.state, r.stderr)
	}
	return r
}

// files returns the names of what was recorded.
func (s *session) files(pattern string) []string {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, pattern))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return names
}

func (s *session) read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}
