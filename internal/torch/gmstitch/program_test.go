package gmstitch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gm/internal/torch/gmtrace"
	"gm/internal/torch/pythons"
)

// session is how Python programs are run on the stand-ins for PyTorch and libgm.so.
type session struct {
	t      *testing.T
	python string
	home   string // of the glue
	stub   string
	log    string // calls of the stand-in for libgm.so
	env    []string
}

// libraryFolder is where the stand-in for libgm.so is built.
var libraryFolder string

// library builds the stand-in for libgm.so, once.
var library = sync.OnceValues(func() (string, error) {
	path := filepath.Join(libraryFolder, "libgm.so")
	build := exec.Command("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-I../../libgm",
		"-o", path, "testdata/gm.c")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the stand-in for libgm.so: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if libraryFolder, err = os.MkdirTemp("", "gm-glue-*"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(libraryFolder)
	return m.Run()
}

// eachPython runs a test in all interpreters, with a session each.
func eachPython(t *testing.T, test func(*session)) {
	t.Helper()
	pythons.Each(t, func(t *testing.T, python string) { test(newSession(t, python)) })
}

// newSession starts a session; without a python it takes the first one.
func newSession(t *testing.T, python string) *session {
	t.Helper()
	if python == "" {
		python = pythons.All(t)[0]
	}
	path, err := library()
	if err != nil {
		t.Fatal(err)
	}
	stub, err := filepath.Abs("testdata/stub")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &session{t: t, python: python, home: filepath.Join(dir, "python"), stub: stub, log: filepath.Join(dir, "log")}
	if err := os.Mkdir(s.home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Install(s.home); err != nil {
		t.Fatal(err)
	}
	s.env = []string{
		"PATH=" + os.Getenv("PATH"), "PYTHONPATH=" + s.home + ":" + stub, "PYTHONDONTWRITEBYTECODE=1", "GMSTITCH_CUPY=1",
		"PYTHONWARNINGS=ignore::DeprecationWarning", // of forks beside threads
		"GMSTITCH_DIR=" + dir, "GM_LIB=" + path, "GM_LOG=" + s.log, "HOME=" + dir, "GMSTITCH_TORCH=pluggable",
	}
	return s
}

// underTrace puts gmtrace's hook around the glue, or within it.
func (s *session) underTrace(outer bool) {
	s.t.Helper()
	dir := s.t.TempDir()
	home := filepath.Join(dir, "python")
	if err := errors.Join(os.Mkdir(home, 0o755), gmtrace.Install(home)); err != nil {
		s.t.Fatal(err)
	}
	path := s.home + ":" + home
	if !outer {
		path = home + ":" + s.home
	}
	s.env = append(s.env, "GMTRACE_DIR="+dir, "PYTHONPATH="+path+":"+s.stub)
}

// result is what a program left behind.
type result struct {
	code           int // -1 when a signal ended it
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
	c.Dir = filepath.Dir(file)
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
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// prints runs a program that must end well, print these lines, and say these things on standard error.
func (s *session) prints(program, stdout, stderr string, env ...string) {
	s.t.Helper()
	r := s.run(program, env...)
	if want := (result{0, stdout, stderr}); r != want {
		s.t.Fatalf("got  %+v\nwant %+v", r, want)
	}
}

// calls returns the calls of the library, without those of other kinds than the named, and of all processes.
func (s *session) calls(kinds ...string) []string {
	s.t.Helper()
	data, err := os.ReadFile(s.log)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		_, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind, _, _ := strings.Cut(call, " "); len(kinds) == 0 || slices.Contains(kinds, kind) {
			found = append(found, call)
		}
	}
	return found
}
