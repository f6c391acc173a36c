package gmstitch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestInstall(t *testing.T) {
	eachPython(t, func(s *session) {
		s.prints(`
import torch
t = torch.empty_bytes(1000, 0, 5)
t.record_stream(6)
del t
torch.cuda.empty_cache()
torch.cuda.set_per_process_memory_fraction(0.5)
print(torch.cuda.get_per_process_memory_fraction(), torch.cuda.get_per_process_memory_fraction(1))
torch._C._cuda_beginAllocateToPool(0, (0, 3))
torch._C._cuda_endAllocateToPool(0, (0, 3))
torch._C._cuda_releasePool(0, (0, 3))
print(torch.cuda.get_allocator_backend())
`, "0.5 1.0\npluggable\n", "", "STUB_TORCH_DEVICES=2")
		want := []string{
			"init 2", "malloc 1000 0 0x5", "record_stream 1 0x6", "free 1000 0 0x5", "reset", "memory_fraction 0.5 0",
			"begin_pool 0 0 3 1", "end_pool 0 0 3", "release_pool 0 0 3",
		}
		if got := s.calls(); !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
	})
}

// TestLazy loads nothing into a process before CUDA starts.
func TestLazy(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import sys, torch
loaded = lambda: any("libgm.so" in line for line in open("/proc/self/maps"))
print(loaded(), torch.cuda.memory_allocated(), "torch.cuda" in sys.modules)
torch.cuda.init()
print(loaded())
`, "False 0 True\nTrue\n", "")
	s.prints("import sys\nprint('gmstitch_hook' in sys.modules, 'ctypes' in sys.modules)", "False False\n", "")
}

// TestNotInstalled leaves PyTorch's own allocator in place, and says why in one line.
func TestNotInstalled(t *testing.T) {
	const program = `
import torch
%
t = torch.empty_bytes(1000)
print(torch.cuda.get_allocator_backend(), torch.cuda.memory_reserved())
`
	own := t.TempDir()
	for name, c := range map[string]struct{ line, stderr, env string }{
		"few addresses": {
			"import resource; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))",
			"a limit of addresses (ulimit -v) leaves less than 4096 MiB", "",
		},
		"already initialised": {"", "Can't swap an already initialized allocator", "STUB_TORCH_EARLY=1"},
		"no streams": {
			"", "PyTorch 2.11.0+stub cannot tell an allocator which streams use its memory", "STUB_TORCH_WITHOUT=set_record_stream_fn"},
		"not pluggable": {
			"", "PyTorch 2.11.0+stub has no pluggable allocators", "STUB_TORCH_WITHOUT=CUDAPluggableAllocator"},
		"no library": {"", "GM_LIB does not name libgm.so", "GM_LIB="},
		"no such library": {
			"", own + "/x.so: cannot open shared object file: No such file or directory", "GM_LIB=" + own + "/x.so"},
		"ROCm": {"torch.version.hip = '6.0'", "this PyTorch is one for ROCm", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, "")
			s.prints(strings.Replace(program, "%", c.line, 1), "native 123\n",
				"gmstitch: PyTorch's own allocator stays in place: "+c.stderr+"\n", c.env)
		})
	}
}

func TestOwnPluggableAllocator(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import os, torch
own = torch.cuda.memory.CUDAPluggableAllocator(os.environ["GM_LIB"], "gm_malloc", "gm_free")
torch.cuda.memory.change_current_allocator(own)
torch.cuda.init()
print(torch._C.allocator is own.allocator())
`, "True\n", "gmstitch: PyTorch's own allocator stays in place: the program has put in one of its own\n")
}

func TestWithoutCUDA(t *testing.T) {
	s := newSession(t, "")
	s.prints("import sys, torch; print([f.names for f in sys.meta_path if type(f).__name__ == 'Finder'])", "[{'cupy'}]\n", "",
		"STUB_TORCH_WITHOUT=_cuda_init")
	s.prints(`
import torch
for i in range(2):
    try: torch.cuda.init()
    except RuntimeError as e: print(e)
`, strings.Repeat("No CUDA GPUs are available\n", 2), "", "STUB_TORCH_DEVICES=0")
}

// TestOlderPyTorch has fewer setters and functions.
func TestOlderPyTorch(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import torch
t = torch.empty_bytes(1000)
print(torch.cuda.memory_allocated(), torch.cuda.memory_snapshot()[0]["total_size"])
`, "1000 1000\n", "", "STUB_TORCH_WITHOUT=set_begin_allocate_to_pool,set_release_pool,_accelerator_getDeviceStats,"+
		"_cuda_getMemoryFraction,_cuda_record_memory_history_legacy,_share_cuda_")
}

// TestOutOfMemory raises what PyTorch raises, and the program goes on.
func TestOutOfMemory(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import torch
held = torch.empty_bytes(600)
try: torch.empty_bytes(600)
except torch.OutOfMemoryError as e: print(e)
del held
t = torch.empty_bytes(600)
print(torch.cuda.memory_stats()["num_ooms"])
`, "CUDA out of memory. Tried to allocate 600 bytes\n1\n", "", "GM_LIMIT=1000")
}

// TestSitecustomize runs the program's own, and gmtrace's around the glue or within it.
func TestSitecustomize(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte("print('own', __name__)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const program = `
import os, sys, torch
t = torch.empty_bytes(1000)
print(torch.cuda.get_allocator_backend(), torch.cuda.memory_allocated(), 'gmtrace_hook' in sys.modules)
print([p for p in sys.path if set(os.listdir(p) if os.path.isdir(p) else []) & {"gmstitch_hook", "gmtrace_hook"}])
print(torch.__spec__.loader is torch.__loader__, "exec_module" in vars(torch.__loader__))
`
	eachPython(t, func(s *session) {
		s.prints(program, "own sitecustomize\npluggable 1000 False\n[]\nTrue False\n", "", "PYTHONPATH="+s.home+":"+s.stub+":"+dir)
		for _, outer := range []bool{true, false} {
			s.underTrace(outer)
			s.prints(program, "pluggable 1000 True\n[]\nTrue False\n", "")
		}
	})
}

// TestRegistration has NCCL register nothing of gm's memory, and all as the program asked where PyTorch's own allocator stays.
func TestRegistration(t *testing.T) {
	const name = "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"
	eachPython(t, func(s *session) {
		const program = `
import os, torch
before = os.environ["` + name + `"]
torch.cuda.init()
print(before, os.environ["` + name + `"])
`
		s.prints(program, "0 0\n", "gmstitch: "+name+" has no effect: gm's memory is mapped in pieces\n", name+"=1")
		s.prints(program, "0 0\n", "", name+"=0")
		s.prints(program, "0 1\n", "gmstitch: PyTorch's own allocator stays in place: GM_LIB does not name libgm.so\n", name+"=1", "GM_LIB=")
		launcher := fmt.Sprintf("import subprocess, sys, torch\nsubprocess.check_call([sys.executable, '-c', %q])", program)
		s.prints(launcher, "0 0\n", "gmstitch: "+name+" has no effect: gm's memory is mapped in pieces\n", name+"=1")
		s.prints(launcher, "0 1\n", "gmstitch: PyTorch's own allocator stays in place: GM_LIB does not name libgm.so\n", name+"=1", "GM_LIB=")
	})
}
