package capture

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gm/formats/trace"
	"gm/internal/cuda/fake"
)

// bench is what the tests of this package share: the fake driver, the preload library and the test programs, compiled once.
type bench struct {
	libraries fake.Libraries
	preload   []byte
	folder    string
}

var built = sync.OnceValues(func() (*bench, error) {
	folder := os.Getenv("GM_CAPTURE_TEST")
	b := &bench{folder: folder}
	var err error
	if b.libraries, err = fake.Build(folder); err != nil {
		return nil, err
	}
	sources, err := filepath.Glob("preload/*.c")
	if err != nil {
		return nil, err
	}
	shim := filepath.Join(folder, shimName)
	if err := compile(append([]string{"-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Werror", "-Wl,-Bsymbolic,-z,now", "-o", shim}, sources...)...); err != nil {
		return nil, err
	}
	if b.preload, err = os.ReadFile(shim); err != nil {
		return nil, err
	}
	for name, args := range map[string][]string{
		"driver": {"testdata/driver.c", "-lcuda"},
		"shared": {"testdata/runtime.c", "-lcudart"},
		"static": {"testdata/runtime.c", b.libraries.RuntimeStatic, "-ldl"},
	} {
		args = append([]string{"-O1", "-I" + b.libraries.Include, "-L" + folder, "-pthread", "-o", filepath.Join(folder, name)}, args...)
		if err := compile(args...); err != nil {
			return nil, err
		}
	}
	return b, nil
})

func compile(args ...string) error {
	out, err := exec.Command("gcc", append([]string{"-std=gnu11", "-Wall", "-Wextra"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("gcc %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// TestMain starts the tests anew where the fake NVML is found: the loader looks at LD_LIBRARY_PATH only when a process begins.
func TestMain(m *testing.M) {
	const again = "GM_CAPTURE_TEST"
	folder := os.Getenv(again)
	if os.Getenv(recordVariable) != "" {
		os.Exit(record(os.Args[1:]))
	}
	if folder != "" {
		os.Exit(m.Run())
	}
	folder, err := os.MkdirTemp("", "gm-capture-test-")
	if err != nil {
		log.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), again+"="+folder, "LD_LIBRARY_PATH="+folder)
	err = cmd.Run()
	os.RemoveAll(folder)
	if err != nil && cmd.ProcessState == nil {
		log.Fatal(err)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// captured is what came of a run.
type captured struct {
	status   int
	traces   []captive
	counts   fake.Counts
	warnings []string
}

// captive is the trace of one process.
type captive struct {
	output Output
	meta   trace.Meta
	rows   []trace.Event
	texts  func(int32) string
}

// run captures a test program.
func run(t *testing.T, o Options, env []string, words ...string) *captured {
	t.Helper()
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	c := &captured{}
	counts := filepath.Join(t.TempDir(), "counts")
	for _, v := range append(b.libraries.Env(counts), env...) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	o.Library = b.preload
	o.Warn = func(format string, args ...any) { c.warnings = append(c.warnings, fmt.Sprintf(format, args...)) }
	s, err := NewSession(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !filepath.IsAbs(words[0]) {
		words[0] = filepath.Join(b.folder, words[0])
	}
	if c.status, err = s.Run(words, os.Stderr); err != nil {
		t.Fatal(err)
	}
	c.gather(t, s, counts)
	return c
}

// gather takes in the traces of a session that has ended, and what the fake driver counted.
func (c *captured) gather(t *testing.T, s *Session, counts string) {
	t.Helper()
	outputs, err := s.Outputs("%p")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs {
		c.traces = append(c.traces, read(t, o))
	}
	if c.counts, err = fake.ReadCounts(counts); err != nil {
		t.Fatal(err)
	}
}

// read writes a trace and reads it again.
func read(t *testing.T, o Output) captive {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := o.Write(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := trace.Open(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := captive{output: o, meta: r.Meta(), texts: r.Strings().Text}
	if err := trace.Each(r, func(_ int64, e *trace.Event) error { c.rows = append(c.rows, *e); return nil }); err != nil {
		t.Fatal(err)
	}
	if int64(len(c.rows)) != rows {
		t.Errorf("%d rows, told of %d", len(c.rows), rows)
	}
	return c
}

// sums adds the rows of all traces up, by kind, as the fake driver does.
func (c *captured) sums(t *testing.T) map[trace.Kind]*fake.Count {
	t.Helper()
	sums := map[trace.Kind]*fake.Count{}
	for _, p := range c.traces {
		sizes := map[int64]uint64{}
		for _, e := range p.rows {
			kind, _ := trace.ParseDriverTag(p.texts(e.Tag))
			s := sums[kind]
			if s == nil {
				s = &fake.Count{}
				sums[kind] = s
			}
			switch e.Op {
			case trace.OpAlloc:
				sizes[e.ID] = uint64(e.Size)
				s.Allocs++
				s.Total += uint64(e.Size)
				s.Current += uint64(e.Size)
			case trace.OpFree:
				s.Frees++
				s.Current -= sizes[e.ID]
			}
		}
	}
	return sums
}

// check compares what was captured with what the fake driver counted.
func (c *captured) check(t *testing.T) {
	t.Helper()
	sums := c.sums(t)
	for kind, want := range c.counted() {
		got := fake.Count{}
		if s := sums[kind]; s != nil {
			got = *s
		}
		want.Peak = 0
		if got != want {
			t.Errorf("%s: captured %+v, the driver counted %+v", kind, got, want)
		}
	}
}

// counted returns what the fake driver counted, by kind.
func (c *captured) counted() map[trace.Kind]fake.Count {
	return map[trace.Kind]fake.Count{
		trace.KindMemory: c.counts.Memory, trace.KindPhysical: c.counts.Physical, trace.KindManaged: c.counts.Managed,
		trace.KindPool: c.counts.PoolUsed, trace.KindContext: c.counts.Context, trace.KindModule: c.counts.Module,
		trace.KindPinned: add(c.counts.PinnedHost, c.counts.HostPhysical),
	}
}

func add(a, b fake.Count) fake.Count {
	return fake.Count{
		Current: a.Current + b.Current, Total: a.Total + b.Total, Allocs: a.Allocs + b.Allocs, Frees: a.Frees + b.Frees,
	}
}

// Every byte that a program obtains, in whichever way, is in its trace.
func TestEveryByte(t *testing.T) {
	for name, words := range map[string][]string{
		"linked":                  {"driver", "linked"},
		"dlsym":                   {"driver", "dlsym"},
		"cuGetProcAddress":        {"driver", "address"},
		"pools":                   {"driver", "pools"},
		"physical memory":         {"driver", "physical"},
		"host memory":             {"driver", "host"},
		"managed, pitched, array": {"driver", "others"},
		"code":                    {"driver", "code"},
		"contexts":                {"driver", "contexts"},
		"a context with pools":    {"driver", "host", "pools", "contexts"},
		"refused":                 {"driver", "refused"},
		"threads":                 {"driver", "threads"},
		"a ring that is full":     {"driver", "many"},
		"all at once":             {"driver", "linked", "dlsym", "address", "pools", "physical", "host", "others", "code", "refused"},
		"fork":                    {"driver", "linked", "children"},
		"exec in a child":         {"driver", "exec"},
		"abort":                   {"driver", "linked", "physical", "abort"},
		"SIGKILL":                 {"driver", "many", "physical", "kill"},
		"_exit":                   {"driver", "linked", "_exit"},
		"another program":         {"driver", "linked", "image"},
		"shared runtime":          {"shared"},
		"static runtime":          {"static"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, audit := range []bool{false, true} {
				c := run(t, Options{Audit: audit}, nil, append([]string{}, words...)...)
				if name == "another program" || name == "a context with pools" { // NVML is not asked often enough
					c.counts.Context = *c.sums(t)[trace.KindContext]
				}
				c.check(t)
			}
		})
	}
}
