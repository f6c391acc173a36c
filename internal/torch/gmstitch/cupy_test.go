package gmstitch

import (
	"slices"
	"strings"
	"testing"
)

// TestCuPy serves CuPy's default pool, on the current stream and device, from its first request on.
func TestCuPy(t *testing.T) {
	eachPython(t, func(s *session) {
		s.prints(`
import cupy
pool = cupy.get_default_memory_pool()
loaded = lambda: any("libgm.so" in line for line in open("/proc/self/maps"))
print(loaded(), pool.used_bytes(), isinstance(pool, cupy.cuda.MemoryPool), cupy.cuda.get_allocator() == pool.malloc)
a = cupy.empty_bytes(1000)
print(loaded(), cupy.get_default_memory_pool() is pool, cupy.cuda.get_allocator() == pool.malloc)
print(pool.used_bytes(), pool.total_bytes(), pool.free_bytes(), pool.n_free_blocks())
with cupy.cuda.Stream(5):
    b = cupy.empty_bytes(2000)
with cupy.cuda.Device(1):
    c = cupy.empty_bytes(3000)
del a, c
pool.free_all_blocks()
pool.set_limit(fraction=0.5)
print(pool.get_limit())
pool.set_limit(size=250)
pool.set_limit()
`, "False 0 True True\nTrue True True\n1000 1000 0 0\n500\n", "")
		want := []string{
			"free 0 0 (nil)", "malloc 1000 0 (nil)", "malloc 2000 0 0x5", "malloc 3000 1 (nil)", "free 0 0 (nil)", "free 0 1 (nil)", "reset",
			"memory_fraction 0.5005 0", "memory_fraction 0.2505 0", "memory_fraction 1 0", "free 0 0 (nil)",
		}
		if got := s.calls(); !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
	})
}

// TestCuPyLeftAlone keeps to what the program, or its user, chooses.
func TestCuPyLeftAlone(t *testing.T) {
	for name, c := range map[string]struct{ program, env string }{
		"another pool": {"pool = cupy.cuda.MemoryPool(); cupy.cuda.set_allocator(pool.malloc)", ""},
		"no pool":      {"cupy.cuda.set_allocator(None)", ""},
		"using_allocator": {
			"context = cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc); context.__enter__()", ""},
		"not asked for": {"", "GMSTITCH_CUPY="},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, "")
			s.prints("import cupy\n"+c.program+"\na = cupy.empty_bytes(1000)\nprint(type(a.data.mem).__name__)\n", "Memory\n", "", c.env)
		})
	}
}

// TestCuPyBack serves a program that turns to its own pool and back to the default one.
func TestCuPyBack(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import cupy
def kind():
    return type(cupy.empty_bytes(1000).data.mem).__name__
before = cupy.cuda.get_allocator()
with cupy.cuda.using_allocator(before):
    print(kind())
print(kind())
cupy.cuda.set_allocator(None)
print(kind())
for back in before, cupy.get_default_memory_pool().malloc:
    cupy.cuda.set_allocator(back)
    print(kind())
`, strings.ReplaceAll("P\nP\nMemory\nP\nP\n", "P\n", "LibgmMemory\n"), "")
}

// TestCuPyNotServed leaves CuPy's own pool in place, and says why in one line.
func TestCuPyNotServed(t *testing.T) {
	const program = `
import cupy
%
a, b = cupy.empty_bytes(1000), cupy.empty_bytes(500)
print(type(a.data.mem).__name__, type(b.data.mem).__name__, cupy.cuda.get_allocator()(1).mem.size)
`
	for name, c := range map[string]struct{ line, stderr, env string }{
		"few addresses": {
			"import resource; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))",
			"a limit of addresses (ulimit -v) leaves less than 4096 MiB", "",
		},
		"no library": {"", "GM_LIB does not name libgm.so", "GM_LIB="},
		"no such library": {
			"", "/nosuch.so: cannot open shared object file: No such file or directory", "GM_LIB=/nosuch.so"},
		"older": {
			"cupy.cuda.get_current_stream = lambda: None", "<lambda>() takes 0 positional arguments but 1 was given", ""},
		"without functions": {
			"", "module 'cupy.cuda' has no attribute 'UnownedMemory'", "STUB_CUPY_WITHOUT=UnownedMemory"},
		"without hooks": {"", "module 'cupy.cuda' has no attribute 'MemoryHook'", "STUB_CUPY_WITHOUT=MemoryHook"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, "")
			s.prints(strings.Replace(program, "%", c.line, 1), "Memory Memory 1\n",
				"gmstitch: CuPy's own memory pool stays in place: "+c.stderr+"\n", c.env)
			if got := s.calls(); len(got) > 0 {
				t.Errorf("calls %q", got)
			}
		})
	}
}

// TestCuPyOther keeps to CuPy's own pool where memory is made in another way.
func TestCuPyOther(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import cupy
class Other(object):
    ptr = device_id = 0
    def __init__(self, *args): raise TypeError("not so")
cupy.cuda.UnownedMemory = Other
print(type(cupy.empty_bytes(1000).data.mem).__name__)
`, "Memory\n", "gmstitch: CuPy's own memory pool stays in place: not so\n")
}

// TestCuPyOutOfMemory raises what CuPy raises, after the garbage was collected, and the program goes on.
func TestCuPyOutOfMemory(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import cupy
pool = cupy.get_default_memory_pool()
class Cycle: pass
c = Cycle()
c.c, c.held = c, cupy.empty_bytes(600)
del c
held = cupy.empty_bytes(700)
pool.set_limit(size=5000)
try: cupy.empty_bytes(600)
except cupy.cuda.memory.OutOfMemoryError as e: print(e)
del held
held = cupy.empty_bytes(600)
`, "Out of memory allocating 600 bytes (700 so far, limit 5000). CUDA out of memory. Tried to allocate 600 bytes\n", "", "GM_LIMIT=1000")
}

// TestCuPyLimit puts the limit of the environment into force on each device.
func TestCuPyLimit(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import cupy
a, b = cupy.empty_bytes(100), cupy.empty_bytes(100)
with cupy.cuda.Device(1): c = cupy.empty_bytes(100)
`, "", "", "CUPY_GPU_MEMORY_LIMIT=300")
	want := []string{"memory_fraction 0.3005 0", "memory_fraction 0.3005 1"}
	if got := s.calls("memory_fraction"); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// TestCuPyFork lets children that are forked before the first request use CUDA.
func TestCuPyFork(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import os, cupy
def child(work):
    pid = os.fork()
    if not pid:
        work()
        os._exit(0)
    print(os.waitpid(pid, 0)[1])
def use():
    a = cupy.empty_bytes(1000)
    assert cupy.get_default_memory_pool().used_bytes() == 1000
def late():
    try: cupy.empty_bytes(1000)
    except RuntimeError: pass
    else: os._exit(1)
child(use)
a = cupy.empty_bytes(500)
child(late)
print(cupy.get_default_memory_pool().used_bytes())
`, "0\n0\n500\n", "")
}

// TestCuPyHooks hands over to CuPy's own pool, which calls memory hooks.
func TestCuPyHooks(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import cupy
class Hook(cupy.cuda.MemoryHook):
    def malloc_preprocess(self, size): print("hook", size)
a = cupy.empty_bytes(1000)
with Hook(): b = cupy.empty_bytes(300)
pool = cupy.get_default_memory_pool()
print(pool.used_bytes(), cupy.cuda.get_allocator() == pool.malloc)
`, "hook 300\n300 True\n", "gmstitch: CuPy's own memory pool serves requests from now on: the program uses memory hooks, which that calls\n")
}

// TestCuPyGraph serves what is allocated during a capture from a pool that is kept.
func TestCuPyGraph(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import cupy
a = cupy.empty_bytes(10)
with cupy.cuda.Stream(5) as s:
    s.begin_capture()
    try: s.begin_capture()
    except RuntimeError: pass
    b = cupy.empty_bytes(20)
    print(s.end_capture())
`, "graph\n", "")
	want := []string{
		"free 0 0 (nil)", "malloc 10 0 (nil)", "retain_pool 0 1668640889 1", "begin_pool 0 1668640889 1 0", "malloc 20 0 0x5", "end_pool 0 1668640889 1",
		"free 0 0 (nil)", "free 0 0 (nil)",
	}
	if got := s.calls(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	s = newSession(t, "")
	s.prints(`
import cupy
with cupy.cuda.Stream(5) as s:
    s.begin_capture()
    b = cupy.empty_bytes(20)
    s.end_capture()
c = cupy.empty_bytes(30)
`, "", "")
	want = []string{"begin_pool 0 1668640889 1 0", "malloc 20 0 0x5", "end_pool 0 1668640889 1", "malloc 30 0 (nil)"}
	if got := s.calls("begin_pool", "malloc", "end_pool"); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q when the first request is captured", got, want)
	}
}

// TestCuPyBesidePyTorch has both in one process on libgm.so.
func TestCuPyBesidePyTorch(t *testing.T) {
	for _, imports := range []string{"import cupy, torch", "import torch, cupy"} {
		s := newSession(t, "")
		s.prints(imports+`
t = torch.empty_bytes(1000)
a = cupy.empty_bytes(500)
print(torch.cuda.memory_allocated(), cupy.get_default_memory_pool().used_bytes())
`, "1500 1500\n", "")
	}
}
