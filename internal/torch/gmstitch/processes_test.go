package gmstitch

import (
	"testing"
)

// TestFork lets children that are forked before CUDA starts use it, and does nothing in those that are forked later.
func TestFork(t *testing.T) {
	eachPython(t, func(s *session) {
		s.prints(`
import os, sys, torch

def child(work):
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        work()
        sys.stdout.flush()
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        sys.exit("a child failed")

def use():
    t = torch.empty_bytes(500)
    print(torch.cuda.get_allocator_backend(), torch.cuda.memory_allocated())

def late():
    try: torch.cuda.init()
    except RuntimeError as e: print(e)
    print(torch.cuda.memory_allocated(), torch.cuda.memory_snapshot())

child(use)
t = torch.empty_bytes(1000)
child(late)
print(torch.cuda.memory_allocated())
`, "pluggable 500\nCannot re-initialize CUDA in forked subprocess\n0 []\n1000\n", "")
		if got := len(s.calls("init")); got != 2 {
			t.Errorf("%d processes have initialised the allocator, want 2", got)
		}
	})
}

// TestDataLoader forks workers as a loader of data does, before and after CUDA starts.
func TestDataLoader(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import multiprocessing, torch

def work(i): return i * i

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool: print(pool.map(work, range(3)))
    held = torch.empty_bytes(1000)
    with context.Pool(2) as pool: print(pool.map(work, range(3)))
    del held
`, "[0, 1, 4]\n[0, 1, 4]\n", "")
	if got := s.calls("malloc", "free"); len(got) != 2 {
		t.Errorf("calls %q", got)
	}
}

func TestSpawn(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import multiprocessing, torch

def work(i):
    t = torch.empty_bytes(100 + i)
    return torch.cuda.get_allocator_backend(), torch.cuda.memory_allocated()

if __name__ == "__main__":
    held = torch.empty_bytes(1000)
    with multiprocessing.get_context("spawn").Pool(1) as pool: print(pool.map(work, range(2)))
    print(torch.cuda.memory_allocated())
`, "[('pluggable', 100), ('pluggable', 101)]\n1000\n", "")
}

func TestSubprocess(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import subprocess, sys, torch
t = torch.empty_bytes(1000)
code = "import torch; t = torch.empty_bytes(7); print(torch.cuda.memory_allocated())"
print(subprocess.check_output([sys.executable, "-c", code]).decode().strip(), torch.cuda.memory_allocated())
`, "7 1000\n", "")
}

func TestThreads(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import threading, torch

def work():
    for i in range(200): torch.empty_bytes(1 + i)

torch.cuda.init()
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(torch.cuda.memory_allocated(), torch.cuda.memory_stats()["allocation.all.allocated"])
`, "0 800\n", "")
}
