package gmstitch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// newNativeSession starts a session in which a stand-in for a C++ compiler makes a stand-in for the compiled half.
func newNativeSession(t *testing.T, python string) *session {
	t.Helper()
	s := newSession(t, python)
	native := filepath.Join(t.TempDir(), "native.so")
	build := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", native, "testdata/native.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cxx, err := filepath.Abs("testdata/cxx.sh")
	if err != nil {
		t.Fatal(err)
	}
	s.env = slices.DeleteFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "GMSTITCH_TORCH=") })
	s.env = append(s.env, "CXX="+cxx, "NATIVE="+native)
	return s
}

// withHeaders gives the stand-in for PyTorch the header that is looked for, and the libraries that are linked.
func withHeaders(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "include/c10/cuda"), 0o755); err != nil {
		t.Fatal(err)
	}
	path, err := library()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(filepath.Join(dir, "include/c10/cuda/CUDACachingAllocator.h"), nil, 0o644)
	for _, name := range []string{"libc10.so", "libc10_cuda.so"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`
import ctypes, torch
torch.__file__ = %q + "/__init__.py"
for name in "libc10.so", "libc10_cuda.so": ctypes.CDLL(%q + "/" + name)
`, dir, dir) + program
}

// TestNative compiles once, for all processes that come later, too, and touches no function.
func TestNative(t *testing.T) {
	eachPython(t, func(s *session) {
		s = newNativeSession(t, s.python)
		program := withHeaders(t, `
before = torch._C._cuda_memoryStats
torch.cuda.init()
print(torch._C._cuda_memoryStats is before, torch.cuda.get_allocator_backend())
`)
		for range 2 {
			s.prints(program, "True native\n", "")
		}
		want := []string{"compile", "native " + filepath.Join(libraryFolder, "libgm.so"), "native " + filepath.Join(libraryFolder, "libgm.so")}
		if got := s.calls(); !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
		made, err := filepath.Glob(filepath.Join(filepath.Dir(s.log), ".cache/gm/torch-*.so"))
		if err != nil || len(made) != 1 {
			t.Errorf("the cache holds %q, %v", made, err)
		}
		s.prints(program, "True native\n", "", "CXX=sh "+strings.TrimPrefix(s.variable("CXX"), "CXX="))
		if got := s.calls("compile"); len(got) != 2 {
			t.Errorf("another compiler: %q", got)
		}
	})
}

// variable returns a variable of the session.
func (s *session) variable(name string) string {
	for _, v := range slices.Backward(s.env) {
		if strings.HasPrefix(v, name+"=") {
			return v
		}
	}
	return ""
}

// TestNativeAtOnce starts processes together: one compiles, the others wait for it.
func TestNativeAtOnce(t *testing.T) {
	s := newNativeSession(t, "")
	program := withHeaders(t, "torch.cuda.init()\nprint(torch.cuda.get_allocator_backend())")
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			if r := s.run(program, "CXX_SLEEP=1"); r != (result{0, "native\n", ""}) {
				t.Errorf("%+v", r)
			}
		})
	}
	wait.Wait()
	if got := s.calls("compile"); len(got) != 1 {
		t.Errorf("%d compilations, want 1", len(got))
	}
	if got := s.calls("native"); len(got) != 6 {
		t.Errorf("%d processes have put the class in, want 6", len(got))
	}
}

// TestNotNativeAtOnce has the processes of a run fail together: one tries to compile, by both standards of C++.
func TestNotNativeAtOnce(t *testing.T) {
	s := newNativeSession(t, "")
	program := withHeaders(t, "torch.cuda.init()\nprint(torch.cuda.get_allocator_backend())")
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			r := s.run(program, "CXX_SLEEP=1", "CXX_FAILS=too old")
			if r.code != 0 || r.stdout != "pluggable\n" || !strings.Contains(r.stderr, "cxx.sh: install.cpp:2:1: error: too old") {
				t.Errorf("%+v", r)
			}
		})
	}
	wait.Wait()
	if got := s.calls("compile"); len(got) != 2 {
		t.Errorf("%d compilations, want 2", len(got))
	}
}

// TestNotNative falls back to a pluggable allocator, and says why in one line.
func TestNotNative(t *testing.T) {
	program := "import torch\nt = torch.empty_bytes(1000)\nprint(torch.cuda.get_allocator_backend(), torch.cuda.memory_allocated())"
	const out = "pluggable 1000\n"
	line := func(why string) string {
		return "gmstitch: a pluggable allocator is used, with which PyTorch can do less: " + why + "\n"
	}
	s := newNativeSession(t, "")
	s.prints(program, out, line("PyTorch's headers are not in "+filepath.Join(s.stub, "torch/include")))
	program = withHeaders(t, program)
	s.prints(program, out, line("there is no C++ compiler /no/such/compiler"), "CXX=/no/such/compiler")
	s.prints(program, out, line("cxx.sh: install.cpp:2:1: error: too old"), "CXX_FAILS=too old")
	s = newNativeSession(t, "")
	s.prints(program, out, line("why not"), "GM_NATIVE_WHY=why not")
	s.prints(program, out, "", "GMSTITCH_TORCH=pluggable")
}

// TestNativeFull compiles into the folder of the run where the file system of the user's cache is full.
func TestNativeFull(t *testing.T) {
	s := newNativeSession(t, "")
	cache := t.TempDir()
	program := withHeaders(t, "torch.cuda.init()\nprint(torch.cuda.get_allocator_backend())")
	s.prints(program, "native\n", "", "XDG_CACHE_HOME="+cache, "CXX_FULL="+cache)
}

// TestNativeFolders compiles into the folder of the run where the user's cache cannot be used, and trusts no file of others.
func TestNativeFolders(t *testing.T) {
	program := withHeaders(t, "torch.cuda.init()\nprint(torch.cuda.get_allocator_backend())")
	for name, prepare := range map[string]func(t *testing.T, cache string){
		"not a folder": func(t *testing.T, cache string) { write(t, cache) },
		"a link":       func(t *testing.T, cache string) { link(t, t.TempDir(), cache) },
		"open to all": func(t *testing.T, cache string) {
			if err := errors.Join(os.Mkdir(cache, 0o777), os.Chmod(cache, 0o777)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newNativeSession(t, "")
			cache := t.TempDir()
			prepare(t, filepath.Join(cache, "gm"))
			s.prints(program, "native\n", "", "XDG_CACHE_HOME="+cache)
			made, err := filepath.Glob(filepath.Join(filepath.Dir(s.log), "torch-*.so"))
			if err != nil || len(made) != 1 {
				t.Errorf("the folder of the run holds %q, %v", made, err)
			}
		})
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}
