package gmtrace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTerminated(t *testing.T) {
	t.Parallel()
	eachPython(t, func(s *session) {
		r := s.run(busy+`
import signal
step(300)
os.kill(os.getpid(), signal.SIGTERM)
step(300)
`, "GMTRACE_HISTORY=2000")
		if r.state != "signal: terminated" || r.stderr != "" {
			t.Errorf("%s, standard error:\n%s", r.state, r.stderr)
		}
		s.compare(r.pid, 0)
	})
}

// TestTerminatedWhileDraining gets the signal within a drain of the main thread, and while it waits for one.
func TestTerminatedWhileDraining(t *testing.T) {
	t.Parallel()
	for _, where := range []string{
		"optimizer.step()", // ends the steps to record: drains in this thread
		"os.kill(os.getpid(), signal.SIGTERM)",
	} {
		s := newSession(t, "", "GMTRACE_HISTORY=1000", "GMTRACE_STEPS=0:1")
		r := s.run(busy + `
import signal, threading
real = torch.cuda.memory._snapshot
sent = []

def snapshot():
    if threading.current_thread() is threading.main_thread() and not sent:
        sent.append(True)
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.3)
    return real()

step(10)
torch.cuda.memory._snapshot = snapshot
step(300)
time.sleep(0.2)
` + where + "\ntime.sleep(5)\n")
		if r.state != "signal: terminated" || r.stderr != "" {
			t.Errorf("%s: %s, standard error:\n%s", where, r.state, r.stderr)
		}
		s.compare(r.pid, 0)
	}
}

// TestOwnSignalHandler leaves a program's own handler alone.
func TestOwnSignalHandler(t *testing.T) {
	t.Parallel()
	s := newSession(t, "")
	r := s.ok(`
import signal
signal.signal(signal.SIGTERM, lambda n, f: print("own"))
` + busy + `
step(10)
os.kill(os.getpid(), signal.SIGTERM)
step(10)
`)
	if r.stdout != "own\n" {
		t.Errorf("printed %q", r.stdout)
	}
	s.compare(r.pid, 0)
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	const fill = busy + `
def fill(): return [torch.empty_bytes(30 << 20) for i in range(9)]
folder = os.environ["GMTRACE_DIR"]
step(10)
`
	for name, end := range map[string]string{
		"caught":   "try: fill()\nexcept torch.cuda.OutOfMemoryError: print(len(os.listdir(folder)))\nstep(10)",
		"uncaught": "fill()",
		"exit":     "try: fill()\nexcept RuntimeError: os._exit(1)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, "", "STUB_TORCH_LIMIT=100000000")
			r := s.run(fill + end)
			if (r.code != 0) != (name != "caught") || name == "caught" && r.stdout != "2\n" ||
				strings.Contains(r.stderr, "OutOfMemoryError: CUDA out of memory") != (name == "uncaught") {
				t.Errorf("%+v", r)
			}
			s.compare(r.pid, 0)
			found := false
			for _, e := range s.recorded(r.pid)[0] {
				found = found || e.Action == "oom" && e.Size == 30<<20
			}
			if !found {
				t.Error("no entry of the failure")
			}
		})
	}
}

func TestOnlyOutOfMemory(t *testing.T) {
	t.Parallel()
	const program = busy + `
for i in range(10):
    step(200)
    optimizer.step()
    for failure in range(int(os.environ["FAILURES"])):
        try: torch.empty_bytes(1 << 30)
        except torch.cuda.OutOfMemoryError: pass
`
	for _, failures := range []int{0, 1, 2} {
		s := newSession(t, "", "GMTRACE_ONLY_OOM=1", "GMTRACE_HISTORY=500", "STUB_TORCH_LIMIT=100000000")
		r := s.ok(program, fmt.Sprintf("FAILURES=%d", failures))
		if n := s.dumps(r.pid); n != min(failures, 1) {
			t.Fatalf("%d failures: %d snapshots", failures, n)
		}
		if n := strings.Count(s.read(fmt.Sprintf("marks.%d", r.pid)), "step\n"); n != 10 {
			t.Errorf("%d marks", n)
		}
		if failures == 0 {
			continue
		}
		all := s.recorded(r.pid)[0]
		last := withoutSnapshots(slices.Clone(all))
		if last[len(last)-1].Action != "oom" || len(all) != 500 {
			t.Errorf("%d entries, the last is %+v", len(all), last[len(last)-1])
		}
	}
}

// TestFork forks workers, which record nothing, before and after CUDA is initialised, and one that initialises it.
func TestFork(t *testing.T) {
	t.Parallel()
	eachPython(t, func(s *session) {
		r := s.ok(busy+`
import multiprocessing, signal

def work(i):
    optimizer.step()
    default = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL or not hasattr(os, "register_at_fork")
    return os.getpid(), default, torch.cuda.is_initialized()

def wait(pid):
    if os.waitpid(pid, 0)[1]:
        sys.exit("a worker failed")

child = os.fork()
if not child:
    step(300)
    sys.exit(0)
wait(child)
print("CHILD", child, flush=True)
context = multiprocessing.get_context("fork")
with context.Pool(2) as pool:
    print(pool.map(work, range(4)), flush=True)
step(300)
with context.Pool(2) as pool:
    print(pool.map(work, range(4)), flush=True)
child = os.fork()
if not child:
    optimizer.step()
    sys.exit(0)
wait(child)
step(300)
`, "GMTRACE_HISTORY=4000")
		var child int
		if _, err := fmt.Sscanf(r.stdout, "CHILD %d", &child); err != nil {
			t.Fatal(err, r.stdout)
		}
		if strings.Count(r.stdout, ", True, False)") != 8 {
			t.Error(r.stdout)
		}
		s.compare(r.pid, 0)
		s.compare(child, 0)
		if n := len(s.files("*")); n != s.dumps(r.pid)+s.dumps(child)+2 {
			t.Errorf("files %q of processes %d and %d", s.files("*"), r.pid, child)
		}
	})
}

// TestForkTerminated sends SIGTERM to a child that was forked after the handler was set.
func TestForkTerminated(t *testing.T) {
	t.Parallel()
	s := newSession(t, "")
	r := s.ok(busy + `
import signal
step(10)
child = os.fork()
if not child:
    time.sleep(20)
    os._exit(0)
os.kill(child, signal.SIGTERM)
print(os.waitpid(child, 0)[1])
`)
	if r.stdout != "15\n" || len(s.files("torch.*")) != 1 {
		t.Errorf("printed %q, files %q", r.stdout, s.files("*"))
	}
}

func TestSpawn(t *testing.T) {
	t.Parallel()
	s := newSession(t, "")
	r := s.ok(`
import multiprocessing, os

def work(i):
    import torch
    held = [torch.empty_bytes(n) for n in range(1, 100)]
    return os.getpid()

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(i,)) for i in range(2)]
    for w in workers: w.start()
    for w in workers: w.join()
    print(*[w.pid for w in workers])
`)
	var a, b int
	if _, err := fmt.Sscan(r.stdout, &a, &b); err != nil {
		t.Fatal(err, r.stdout)
	}
	s.compare(a, 0)
	s.compare(b, 0)
	if n := len(s.files("torch.*")); n != 2 {
		t.Errorf("files %q", s.files("*"))
	}
}
