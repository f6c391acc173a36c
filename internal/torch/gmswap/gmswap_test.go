package gmswap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gm/internal/cuda/fake"
	"gm/internal/libgm/planner"
)

// kit is libgm.so, the fake driver and the hook, made once for all tests, which share what Python compiles of the hook.
type kit struct {
	dir  string
	fake fake.Libraries
	err  error
}

var shared = sync.OnceValue(func() (k kit) {
	if k.dir, k.err = os.MkdirTemp("", "gm-offload-"); k.err != nil {
		return k
	}
	if k.fake, k.err = fake.Build(k.dir, "-O2"); k.err != nil {
		return k
	}
	if k.err = errors.Join(os.Mkdir(k.home(), 0o755), Install(k.home())); k.err != nil {
		return k
	}
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", k.library(), "gm/internal/libgm")
	if out, err := build.CombinedOutput(); err != nil {
		k.err = fmt.Errorf("build libgm.so: %w\n%s", err, out)
	}
	return k
})

func (k kit) library() string  { return filepath.Join(k.dir, "libgm.so") }
func (k kit) home() string     { return filepath.Join(k.dir, "python") }
func (k kit) bytecode() string { return filepath.Join(k.dir, "bytecode") }

// TestMain is a planner, too, for the programs that the tests run.
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

// session is how programs are run on the stand-in for PyTorch.
type session struct {
	t      *testing.T
	python string
	kit    kit
	dir    string
	env    []string // of a run without the hook
	hook   []string // what makes it one with the hook
}

func newSession(t *testing.T) *session {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to run the hook in")
	}
	k := shared()
	if errors.Is(k.err, fake.ErrNoCompiler) {
		t.Skip("libgm.so is C in part: ", k.err)
	}
	if k.err != nil {
		t.Fatal(k.err)
	}
	s := &session{t: t, python: python, kit: k, dir: t.TempDir()}
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := testdata + "/stub:" + testdata
	s.env = append(k.fake.Env(s.counts()),
		"PATH="+os.Getenv("PATH"), "HOME="+s.dir, "PYTHONPATH="+path, "PYTHONPYCACHEPREFIX="+k.bytecode(),
		"PYTHONWARNINGS=ignore::DeprecationWarning",                              // of forks beside threads
		"MALLOC_MMAP_THRESHOLD_=1073741824", "MALLOC_TRIM_THRESHOLD_=1073741824", // or each tensor's bytes are new pages
		"GM_LIB="+k.library(), "GM_DIR="+filepath.Join(s.dir, "pages"), "GM_PLANNER="+self, "GM_FAKE_DEVICES=2",
	)
	if folder := os.Getenv("GM_FAKE_RACES"); folder != "" {
		s.looksForRaces(t, filepath.Join(folder, strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())))
	}
	s.hook = []string{"PYTHONPATH=" + k.home() + ":" + path, "GMSWAP_DIR=" + s.dir, "GMSWAP_HOST=67108864", "FACTS=" + s.facts()}
	return s
}

func (s *session) counts() string { return filepath.Join(s.dir, "counts") }
func (s *session) facts() string  { return filepath.Join(s.dir, "facts") }

// facts are what the hook did in a run.
type facts struct {
	Served, Declined                 bool
	Out, Back                        int // copies
	Steps, Planned, Remade, Followed int
	Deviated                         int
	Peak, Foreseen                   int            // bytes of the device, of the last step
	Devices                          []int          // copies to the host, of each
	Ways                             map[string]int // how many steps went which way
}

// result is what a program left behind.
type result struct {
	code           int // -1 when a signal ended it
	stdout, stderr string
}

// run runs a program of testdata/programs.py, or of what it imports, to its end.
func (s *session) run(name string, env ...string) result {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.Command(s.python, "testdata/programs.py", name)
	c.Env = append(slices.Clone(s.env), env...)
	c.Stdout, c.Stderr = &stdout, &stderr
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	limit := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	defer limit.Stop()
	err := c.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// hooked runs a program with the hook.
func (s *session) hooked(name, how string, env ...string) result {
	s.t.Helper()
	return s.run(name, append(append(slices.Clone(s.hook), "HOW="+how), env...)...)
}

// plain is what programs print without the hook, by their names.
var plain sync.Map

// want returns what a program prints without the hook.
func (s *session) want(name string) string {
	s.t.Helper()
	run, _ := plain.LoadOrStore(name, sync.OnceValue(func() result { return s.run(name) }))
	r := run.(func() result)()
	if r.code != 0 || r.stderr != "" || r.stdout == "" {
		s.t.Fatalf("without the hook: %+v", r)
	}
	return r.stdout
}

// usual is what every run says.
var usual = regexp.MustCompile(`(?m)^gmswap: (\w+: step \d+ ms .*|\d+ steps( \(.*\))?: .*)\n`)

// same runs a program without the hook and with it. What comes out must be the same, and all memory must have been freed. It returns
// what the hook did, and what it said beside the usual.
func (s *session) same(name, how string, env ...string) (facts, []string) {
	s.t.Helper()
	want := s.want(name)
	got := s.hooked(name, how, env...)
	if got.code != 0 || got.stdout != want {
		s.t.Fatalf("exit status %d\n%s%s", got.code, firstDifference(got.stdout, want), got.stderr)
	}
	var f facts
	data, err := os.ReadFile(s.facts())
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.holdsNothing()
	said := strings.Split(usual.ReplaceAllString(got.stderr, ""), "\n")
	return f, said[:len(said)-1]
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d of %d is %s, want %s\n", i+1, len(w), g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d\n", len(g), len(w))
}

// holdsNothing checks that all memory went back to the driver.
func (s *session) holdsNothing() {
	s.t.Helper()
	c, err := fake.ReadCounts(s.counts())
	if err != nil {
		s.t.Fatal(err)
	}
	if c.Memory.Current != 0 || c.Physical.Current != 0 || c.PinnedHost.Current != 0 {
		s.t.Errorf("the driver still holds %d and %d bytes of devices and %d of the host", c.Memory.Current, c.Physical.Current, c.PinnedHost.Current)
	}
}

// says checks what a run said: the beginnings of lines.
func (s *session) says(got, want []string) {
	s.t.Helper()
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		s.t.Errorf("it said\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
