package gmtrace

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// busy allocates in steps, each ended by an optimizer; steps and allocs are to be set.
const busy = `
import os, sys, time
import torch

def step(allocs, device=0, live=[]):
    for i in range(allocs):
        live.append(torch.empty_bytes(1000 + i * 37 % 50000, device))
        if len(live) > 50:
            live.pop(0)
        if i % 100 == 0:
            time.sleep(0.005)  # PyTorch is not as fast either

optimizer = torch.optim.Optimizer()
`

func TestWithoutTorch(t *testing.T) {
	t.Parallel()
	eachPython(t, func(s *session) {
		const program = `
import sys
print(sorted(sys.modules), [p for p in sys.path if p != sys.path[0]])
import json, importlib.util
print(importlib.util.find_spec("torch").name, importlib.util.find_spec("nothing"), json.__spec__.loader)
`
		with := s.ok(program)
		without := s.ok(program, "PYTHONPATH="+strings.Split(s.env[1], ":")[1])
		clean := func(text string) string { return text[:strings.Index(text, " object at")] }
		if clean(with.stdout) != clean(without.stdout) {
			t.Errorf("with the hook:\n%s\nwithout:\n%s", with.stdout, without.stdout)
		}
		if files := s.files("*"); len(files) > 0 {
			t.Errorf("files %q", files)
		}
	})
}

func TestNoSession(t *testing.T) {
	t.Parallel()
	s := newSession(t, "")
	for _, dir := range []string{"", "/nonexistent"} {
		r := s.ok(busy+"step(100); print(len(sys.meta_path), 'gmtrace_hook' in sys.modules)", "GMTRACE_DIR="+dir)
		if !strings.HasSuffix(r.stdout, "False\n") {
			t.Errorf("with %q: %s", dir, r.stdout)
		}
	}
}

// TestSitecustomize runs the program's own sitecustomize as if the hook were not there.
func TestSitecustomize(t *testing.T) {
	t.Parallel()
	eachPython(t, func(s *session) {
		for _, own := range []string{"print('own', __name__)\nvalue = 7\n", "raise ValueError('own')\n", "import nothing_of_this_name\n"} {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte(own), 0o644); err != nil {
				t.Fatal(err)
			}
			const program = "import sys\nprint(getattr(sys.modules.get('sitecustomize'), 'value', None))\n"
			with := s.run(program, "PYTHONPATH="+s.home+":"+dir)
			without := s.run(program, "PYTHONPATH="+dir)
			if with.stdout != without.stdout || with.stderr != without.stderr || with.code != without.code {
				t.Errorf("%q:\n%+v\nwithout the hook:\n%+v", own, with, without)
			}
		}
	})
}

func TestExit(t *testing.T) {
	t.Parallel()
	eachPython(t, func(s *session) {
		r := s.ok(busy+`
for i in range(30):
    step(500)
    step(100, 1)
    optimizer.step()
spec = torch.__spec__
print(type(spec.loader).__name__, spec.loader is torch.__loader__, 'exec_module' in vars(spec.loader))
print(any(type(f).__module__ == 'sitecustomize' for f in sys.meta_path))
`, "GMTRACE_HISTORY=8000", "STUB_TORCH_DEVICES=2", "STUB_TORCH_JITTER=2000")
		s.compare(r.pid, 0)
		if n := s.dumps(r.pid); n < 4 {
			t.Errorf("%d snapshots", n)
		}
		if want := "SourceFileLoader True False\nFalse\n"; r.stdout != want {
			t.Errorf("printed %q, want %q", r.stdout, want)
		}
		if files := s.files("*.tmp"); len(files) > 0 {
			t.Errorf("left %q", files)
		}
		var about map[string]any
		if err := json.Unmarshal([]byte(s.read(fmt.Sprintf("torch.%d.json", r.pid))), &about); err != nil {
			t.Fatal(err)
		}
		if about["torch"] != "2.11.0+stub" || about["path"] != "python" || about["history"] != "on" || about["ring"] != 8000.0 {
			t.Errorf("about %v", about)
		}
	})
}

func TestImmediateExit(t *testing.T) {
	t.Parallel()
	s := newSession(t, "")
	r := s.ok(busy+"for i in range(40):\n    step(500)\nos._exit(0)", "GMTRACE_HISTORY=8000")
	s.compare(r.pid, 8000)
}

func TestStacks(t *testing.T) {
	t.Parallel()
	s := newSession(t, "", "GMTRACE_STACKS=python")
	r := s.ok(busy + "step(3)")
	for _, e := range s.recorded(r.pid)[0] {
		if want := e.Action == "alloc"; strings.Contains(e.Stack, "<module>") != want || strings.Contains(e.Stack, ";step (") != want {
			t.Errorf("%s with stack %q", e.Action, e.Stack)
		}
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	s := newSession(t, "")
	if err := os.WriteFile(filepath.Join(s.dir, "live"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := s.ok(busy + `
step(10)
done = time.time()
def written():
    with os.scandir(os.environ["GMTRACE_DIR"]) as files:
        return any(f.name.endswith(".pickle") and f.stat().st_mtime > done for f in files)
while not written() and time.time() < done + 20:
    time.sleep(0.1)
os._exit(0)
`)
	s.compare(r.pid, 0)
}

// TestFolderGone goes on, and is quiet, when there is nowhere to write.
func TestFolderGone(t *testing.T) {
	t.Parallel()
	s := newSession(t, "")
	s.ok(busy+`
import shutil
step(2000)
gone = os.environ["GMTRACE_DIR"] + "-gone"  # at once: a file may be being written
os.rename(os.environ["GMTRACE_DIR"], gone)
shutil.rmtree(gone)
for i in range(300):
    step(20)
    optimizer.step()
    `, "GMTRACE_HISTORY=1000")
}

func TestOldInterfaces(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"2.0", "2.1"} {
		s := newSession(t, "", "STUB_TORCH_API="+api, "GMTRACE_HISTORY=1000")
		r := s.ok(busy + "for i in range(20):\n    step(50)\n    time.sleep(0.02)\n")
		s.compare(r.pid, 0)
	}
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	s := newSession(t, "", "STUB_TORCH_BACKEND=cudaMallocAsync")
	r := s.ok(busy + "step(10)\noptimizer.step()\n")
	if text := s.read(fmt.Sprintf("torch.%d.json", r.pid)); !strings.Contains(text, "the allocator's backend is cudaMallocAsync") {
		t.Error(text)
	}
	if n := len(strings.Fields(s.read(fmt.Sprintf("marks.%d", r.pid)))); n != 2 || s.dumps(r.pid) > 0 {
		t.Errorf("%d words of marks, %d snapshots", n, s.dumps(r.pid))
	}
}

// TestCppDump calls a function as PyTorch's library has it.
func TestCppDump(t *testing.T) {
	t.Parallel()
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++ to build the function with")
	}
	s := newSession(t, "")
	stub := t.TempDir()
	if err := os.CopyFS(stub, os.DirFS("testdata/stub")); err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(stub, "torch", "lib")
	if err := os.Mkdir(lib, 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(compiler, "-shared", "-fPIC", "-o", filepath.Join(lib, "libtorch_cuda.so"), "testdata/snapshot.cpp")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := s.ok(busy+"step(100)\n", "PYTHONPATH="+s.home+":"+stub)
	if got := s.read(fmt.Sprintf("history.%d.0.pickle", r.pid)); got != strings.Repeat("snapshot", 100_000) {
		t.Errorf("%d bytes", len(got))
	}
	if text := s.read(fmt.Sprintf("torch.%d.json", r.pid)); !strings.Contains(text, `"path": "c++"`) {
		t.Error(text)
	}
}
