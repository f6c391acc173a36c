package fake

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// kit is the libraries, built with some flags, and where programs that use them go.
type kit struct {
	Libraries
	dir   string
	flags []string
}

func newKit(t *testing.T, dir string, flags ...string) kit {
	t.Helper()
	libraries, err := Build(dir, append(flags, "-Werror")...)
	if errors.Is(err, ErrNoCompiler) {
		t.Skip("the fake CUDA libraries are C: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return kit{libraries, dir, flags}
}

var (
	sharedDir string
	shared    sync.Mutex
	plain     *kit
	scripts   string // the program of script.c
)

func TestMain(m *testing.M) {
	var err error
	if sharedDir, err = os.MkdirTemp("", "gm-fake-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(sharedDir)
	os.Exit(code)
}

// plainKit returns the libraries without sanitizers, and the script program, both made once.
func plainKit(t *testing.T) (kit, string) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if plain == nil {
		k := newKit(t, sharedDir)
		scripts = k.compile(t, "script", "script.c", "-lcuda")
		plain = &k
	}
	return *plain, scripts
}

// compile makes a program, or a library where the arguments say so, from a file in testdata.
func (k kit) compile(t *testing.T, name, source string, args ...string) string {
	t.Helper()
	cc, err := compiler()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(k.dir, name)
	all := append([]string{"-std=c11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-I" + k.Include, "-o", out}, k.flags...)
	all = append(all, filepath.Join("testdata", source))
	all = append(all, args...)
	all = append(all, "-L"+k.Dir, "-pthread", "-ldl")
	if text, err := exec.Command(cc, all...).CombinedOutput(); err != nil {
		t.Fatalf("compiling %s: %v\n%s", source, err, text)
	}
	return out
}

// command prepares a program; environment adds to, and counts may be "".
func (k kit) command(t *testing.T, program, counts string, environment []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(append(os.Environ(), k.Env(counts)...), "TSAN_OPTIONS=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, environment...)
	cmd.WaitDelay = time.Second
	return cmd
}

// programs are those that check by themselves what they test.
var programs = []struct {
	name, source string
	libraries    []string
	environment  []string
	file         string // the variable that names a file of its own
}{
	{name: "vmm"},
	{name: "memory"},
	{name: "pool"},
	{name: "stream"},
	{name: "work", environment: []string{"GM_FAKE_WORK=cuMemcpyDtoHAsync=100ms"}},
	{name: "capture"},
	{name: "early"},
	{name: "races", file: "GM_FAKE_RACES"},
	{name: "context", environment: []string{"GM_FAKE_DEVICES=2"}},
	{name: "peers", environment: []string{"GM_FAKE_DEVICES=2"}},
	{name: "resolve"},
	{name: "fork"},
	{name: "share"},
	{name: "runtime", libraries: []string{"-lcudart"}},
	{name: "runtime-static", source: "runtime.c", libraries: []string{"-l:libcudart_static.a"}},
}

func runPrograms(t *testing.T, k kit) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			if p.file != "" && slices.Contains(k.flags, "-fsanitize=thread") {
				t.Skip("its copies are not in order, which is what it looks for")
			}
			source, libraries := p.source, p.libraries
			if source == "" {
				source = p.name + ".c"
			}
			if libraries == nil {
				libraries = []string{"-lcuda"}
			}
			program := k.compile(t, p.name, source, libraries...)
			environment := p.environment
			if p.file != "" {
				environment = append(slices.Clone(environment), p.file+"="+filepath.Join(t.TempDir(), "file"))
			}
			if out, err := k.command(t, program, "", environment).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestPrograms(t *testing.T) {
	for name, flags := range map[string][]string{
		"plain":   nil,
		"address": {"-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"},
		"thread":  {"-fsanitize=thread"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "plain" {
				needSanitizer(t, flags)
				runPrograms(t, newKit(t, t.TempDir(), flags...))
				return
			}
			k, _ := plainKit(t)
			runPrograms(t, k)
		})
	}
}

// needSanitizer skips where the compiler comes without the sanitizers' libraries or the machine cannot run them.
func needSanitizer(t *testing.T, flags []string) {
	t.Helper()
	cc, err := compiler()
	if err != nil {
		t.Skip("the fake CUDA libraries are C: ", err)
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "empty.c"), filepath.Join(dir, "empty")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, append(flags, "-o", program, source)...).CombinedOutput(); err != nil {
		t.Skipf("no %s: %v\n%s", flags[0], err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Skipf("no %s here: %v\n%s", flags[0], err, out)
	}
}

// script runs calls and returns their results. It may kill itself.
func script(t *testing.T, counts string, environment []string, words string) string {
	t.Helper()
	k, program := plainKit(t)
	cmd := k.command(t, program, counts, environment, strings.Fields(words)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && !exit.Exited()) {
		t.Fatalf("script %s: %v", words, err)
	}
	return strings.TrimSpace(string(out))
}

// counted runs calls and returns what the driver counted, too.
func counted(t *testing.T, environment []string, words string) (string, Counts) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "counts")
	results := script(t, path, environment, words)
	c, err := ReadCounts(path)
	if err != nil {
		t.Fatal(err)
	}
	return results, c
}

const mib = 1 << 20

func TestFaultsAndLimits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, environment, words, want string }{
		{"third call", "GM_FAKE_FAIL=cuMemCreate:3=2", "begin create:0x200000 create:0x200000 create:0x200000 create:0x200000", "0 0 0 2 0"},
		{"from the second on", "GM_FAKE_FAIL=cuMemAlloc:2+=999", "begin alloc:1 alloc:1 alloc:1", "0 0 999 999"},
		{"of one version", "GM_FAKE_FAIL=cuMemAlloc_v2:1=2,cuMemFree_v2:1=1", "begin alloc:1 alloc:1 free free", "0 2 0 1 0"},
		{"another function's name begins so", "GM_FAKE_FAIL=cuMemAlloc:1+=2", "begin managed:4096 async:4096 host:4096", "0 0 0 0"},
		{"init", "GM_FAKE_FAIL=cuInit:1=100", "begin begin", "100 0"},
		{"capacity", "GM_FAKE_CAPACITY=0x40000000", "begin alloc:0x20000000 create:0x1000000 create:0x200000 free create:0x1000000", "0 0 2 0 0 0"},
		{"limit", "GM_FAKE_LIMIT=0x40000000", "begin alloc:0x20000000 alloc:0x10000000 alloc:0x200000", "0 0 2 0"},
		{"no room for a context", "GM_FAKE_LIMIT=0x10000000", "begin alloc:1", "2 201"},
		{"a pool gives way", "GM_FAKE_CAPACITY=0x40000000", "begin async:0x1e000000 free alloc:0x1e000000", "0 0 0 0"},
		{"no device", "GM_FAKE_DEVICES=0", "begin", "100"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := script(t, "", []string{test.environment}, test.words); got != test.want {
				t.Errorf("%s gives %s, want %s", test.words, got, test.want)
			}
		})
	}
}

func TestFaultLeavesNothing(t *testing.T) {
	t.Parallel()
	_, c := counted(t, []string{"GM_FAKE_FAIL=cuMemMap:1=2"}, "begin create:0x400000 map release")
	if want := (Count{Peak: 4 * mib, Total: 4 * mib, Allocs: 1, Frees: 1}); c.Physical != want {
		t.Errorf("a mapping that failed keeps memory: %+v, want %+v", c.Physical, want)
	}
}

func TestFaultUnreadable(t *testing.T) {
	t.Parallel()
	k, program := plainKit(t)
	cmd := k.command(t, program, "", []string{"GM_FAKE_FAIL=cuMemMap=1"}, "begin")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), `cannot read "cuMemMap=1"`) {
		t.Errorf("%v, %s", err, out)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	plainKit(t)
	start := time.Now()
	script(t, "", []string{"GM_FAKE_DELAY=cuMemAlloc=20ms,cuMemFree=100us"}, "begin alloc:1 free alloc:1 free")
	if d := time.Since(start); d < 40*time.Millisecond {
		t.Errorf("two allocations of 20 ms took %v", d)
	}
}

// TestCountsAfterKill looks at what a process held when it was killed.
func TestCountsAfterKill(t *testing.T) {
	t.Parallel()
	got, c := counted(t, nil, "begin alloc:1000 alloc:3145728 free create:0x400000 map release create-host:0x200000 "+
		"async:1000000 managed:4096 host:8192 kill")
	if want := "0 0 0 0 0 0 0 0 0 0 0"; got != want {
		t.Fatalf("gives %s, want %s", got, want)
	}
	live := func(n uint64) Count { return Count{Current: n, Peak: n, Total: n, Allocs: 1} }
	want := Counts{
		Memory:       Count{Current: 1000, Peak: 1000 + 3*mib, Total: 1000 + 3*mib, Allocs: 2, Frees: 1},
		Physical:     live(4 * mib),
		Context:      live(500 * mib),
		PoolReserved: live(32 * mib),
		PoolUsed:     live(1000000),
		Managed:      live(4096),
		PinnedHost:   live(8192),
		HostPhysical: live(2 * mib),
		Devices:      []DeviceCount{{Used: (500 + 2 + 4 + 32) * mib, Peak: (500 + 2 + 4 + 32) * mib}},
	}
	if len(c.Processes) != 1 || c.Processes[0].Used[0] != c.Devices[0].Used {
		t.Errorf("processes %+v", c.Processes)
	}
	c.Processes = nil
	if fmt.Sprint(c) != fmt.Sprint(want) {
		t.Errorf("counts\n%+v, want\n%+v", c, want)
	}
}

func TestCountsByProcess(t *testing.T) {
	t.Parallel()
	k, program := plainKit(t)
	cmd := k.command(t, program, filepath.Join(k.dir, "counts-%p.bin"), nil, "begin")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	c, err := ReadCounts(filepath.Join(k.dir, fmt.Sprintf("counts-%d.bin", cmd.Process.Pid)))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Processes) != 1 || c.Processes[0].PID != cmd.Process.Pid {
		t.Errorf("processes %+v, want %d alone", c.Processes, cmd.Process.Pid)
	}
}

func TestReadCountsRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counts")
	for _, text := range []string{"", "gmfake01", strings.Repeat("x", 4096)} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if c, err := ReadCounts(path); err == nil {
			t.Errorf("%d bytes that are no counts: %+v", len(text), c)
		}
	}
}

// waiting is a script that holds what it has until it is told to end.
type waiting struct {
	*exec.Cmd
	stdin io.WriteCloser
}

func (k kit) waiting(t *testing.T, program, counts string, environment []string, results, words string) waiting {
	t.Helper()
	cmd := k.command(t, program, counts, environment, strings.Fields(words+" wait")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := waiting{cmd, stdin}
	t.Cleanup(func() { w.end() })
	got := make([]byte, len(results))
	if _, err := io.ReadFull(stdout, got); err != nil || string(got) != results {
		t.Fatalf("%s gives %s, %v; want %s", words, got, err, results)
	}
	return w
}

func (w waiting) end() {
	w.stdin.Close()
	w.Wait()
}

// TestProcessesShareDevice has two processes on one device, and NVML beside them.
func TestProcessesShareDevice(t *testing.T) {
	t.Parallel()
	k, program := plainKit(t)
	smi := k.compile(t, "smi", "smi.c", "-lnvidia-ml")
	counts := filepath.Join(k.dir, "counts")
	environment := []string{"GM_FAKE_CAPACITY=0x80000000", "GM_FAKE_DEVICES=2"}
	const uuid = "NVIDIA H200 GPU-6d8aa7c4-e1fe-1b38-5572-8facc9e60300"
	see := func(want string) {
		t.Helper()
		out, err := k.command(t, smi, counts, environment).CombinedOutput()
		if line, _, _ := strings.Cut(string(out), "\n"); err != nil || line != want {
			t.Errorf("NVML sees %s, %v; want %s", out, err, want)
		}
	}
	see("0 " + uuid + " used 0")
	first := k.waiting(t, program, counts, environment, "0 0", "begin alloc:0x20000000")
	second := k.waiting(t, program, counts, environment, "0 0 2", "begin alloc:0x20000000 alloc:0x10000000")
	const context = 500 * mib
	see(fmt.Sprintf("0 %s used %d %d:%d %d:%d", uuid, 2*(context+512*mib),
		first.Process.Pid, context+512*mib, second.Process.Pid, context+512*mib))
	first.Process.Kill()
	first.end()
	see(fmt.Sprintf("0 %s used %d %d:%d", uuid, context+512*mib, second.Process.Pid, context+512*mib))
}

// TestAfterExit calls the driver from a destructor that runs after the driver's.
func TestAfterExit(t *testing.T) {
	t.Parallel()
	k, _ := plainKit(t)
	late := k.compile(t, "late.so", "late.c", "-shared", "-fPIC")
	program := k.compile(t, "exit", "exit.c", "-lcuda")
	out, err := k.command(t, program, "", nil, late).CombinedOutput()
	if err != nil || string(out) != "4\n" {
		t.Errorf("gives %s, %v; want CUDA_ERROR_DEINITIALIZED", out, err)
	}
}
