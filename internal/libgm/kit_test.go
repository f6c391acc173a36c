package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gm/internal/cuda/fake"
	"gm/internal/libgm/planner"
)

// kit is libgm.so and the fake driver.
type kit struct {
	dir       string
	fake      fake.Libraries
	sanitizer []string // flags of the compiler of C, for all that is built
	err       error
}

// shared is what all tests use but those of sanitizers.
var shared = sync.OnceValue(func() (k kit) {
	if k.dir, k.err = os.MkdirTemp("", "gm-libgm-"); k.err != nil {
		return k
	}
	return buildKit(k.dir)
})

// buildKit builds both in a folder.
func buildKit(dir string, sanitizer ...string) (k kit) {
	k.dir, k.sanitizer = dir, sanitizer
	if k.fake, k.err = fake.Build(k.dir, append([]string{"-O2"}, sanitizer...)...); k.err != nil {
		return k
	}
	script, err := filepath.Abs("libgm.map")
	if err != nil {
		k.err = err
		return k
	}
	k.err = k.tool("go", "build", "-buildmode=c-shared", "-ldflags=-extldflags=-Wl,--version-script="+script, "-o", k.library(), ".")
	return k
}

// TestMain also acts as the planner of the programs that the tests run.
func TestMain(m *testing.M) {
	if planner.Asked(os.Args) {
		os.Exit(planner.Main())
	}
	code := m.Run()
	if k := shared(); k.dir != "" {
		os.RemoveAll(k.dir)
	}
	os.Exit(code)
}

func newKit(t testing.TB) kit {
	t.Helper()
	k := shared()
	if errors.Is(k.err, fake.ErrNoCompiler) {
		t.Skip("libgm.so is C in part: ", k.err)
	}
	if k.err != nil {
		t.Fatal(k.err)
	}
	return k
}

func (k kit) library() string { return filepath.Join(k.fake.Dir, "libgm.so") }

// tool runs a compiler.
func (k kit) tool(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	if len(k.sanitizer) > 0 {
		cmd.Env = append(os.Environ(), "CGO_CFLAGS=-g "+strings.Join(k.sanitizer, " "))
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// compile makes a program from a file in testdata, once.
func (k kit) compile(t testing.TB, source string, args ...string) string {
	t.Helper()
	compiling.Lock()
	defer compiling.Unlock()
	out := filepath.Join(k.dir, strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	if _, err := os.Stat(out); err != nil {
		k.compileTo(t, out, source, args...)
	}
	return out
}

// compileTo makes a program or a library. It skips the test if the source is C++ and there is no C++ compiler.
func (k kit) compileTo(t testing.TB, out, source string, args ...string) {
	t.Helper()
	cc := []string{"gcc", "-std=gnu11"}
	if filepath.Ext(source) == ".cpp" {
		cc = []string{"g++", "-std=c++17", "-D_Static_assert=static_assert"} // for the headers of the fake driver
		if _, err := exec.LookPath("g++"); err != nil {
			t.Skip("no C++ compiler")
		}
	}
	all := append(cc[1:], "-g", "-Wall", "-Wextra", "-Werror", "-I"+k.fake.Include, "-I.", "-o", out, source)
	all = append(append(append(all, args...), k.sanitizer...), "-L"+k.fake.Dir, "-lgm", "-lcuda", "-pthread", "-ldl")
	if err := k.tool(cc[0], all...); err != nil {
		t.Fatal(err)
	}
}

var compiling sync.Mutex

// run is a run of a program on the fake driver.
type run struct {
	kit
	env []string
	dir string // for files of this run
	in  []byte // standard input
	out string // standard output
	err string // standard error
	rc  int
}

func (k kit) newRun(t testing.TB, env ...string) *run {
	t.Helper()
	r := &run{kit: k, dir: t.TempDir()}
	r.env = append(os.Environ(), k.fake.Env(filepath.Join(r.dir, "counts"))...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "GM_PLANNER="+self)
	r.env = append(r.env, "GM_DIR="+filepath.Join(r.dir, "pages"), "GM_LIB="+k.library())
	r.env = append(r.env, env...)
	return r
}

// do runs a program. The test fails if the program hangs.
func (r *run) do(t testing.TB, program string, args ...string) *run {
	t.Helper()
	var out, errOut strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = r.env, bytes.NewReader(r.in), &out, &errOut, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	cmd.Wait()
	killer.Stop()
	r.out, r.err, r.rc = out.String(), errOut.String(), cmd.ProcessState.ExitCode()
	return r
}

// passes runs a program that checks its own results.
func (r *run) passes(t *testing.T, program string, args ...string) *run {
	t.Helper()
	if r.do(t, program, args...); r.rc != 0 || r.err != "" {
		t.Fatalf("%s %s: exit %d\n%s%s", filepath.Base(program), strings.Join(args, " "), r.rc, r.out, r.err)
	}
	return r
}

// counts returns the counts of the fake driver.
func (r *run) counts(t *testing.T) fake.Counts {
	t.Helper()
	c, err := fake.ReadCounts(filepath.Join(r.dir, "counts"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// holdsNothing checks that all memory was returned to the driver.
func (r *run) holdsNothing(t *testing.T) {
	t.Helper()
	if c := r.counts(t); c.Memory.Current != 0 || c.Physical.Current != 0 {
		t.Errorf("the driver still holds %d bytes from cuMemAlloc and %d from cuMemCreate", c.Memory.Current, c.Physical.Current)
	}
}

// allocators are those on which every test of contents runs.
var allocators = inProcess()
