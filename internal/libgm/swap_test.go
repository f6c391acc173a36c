package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSwap moves tensors to the host and back on a driver whose copies, or whose other work, are slow, so that only the order of the
// streams preserves contents.
func TestSwap(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/swap.c")
	t.Run("large", func(t *testing.T) {
		t.Parallel()
		k.newRun(t, "GM_FAKE_DEVICES=2").passes(t, program, "large").swappedAll(t)
	})
	for name, work := range map[string]string{
		"slow out":       "cuMemcpyDtoHAsync=2ms",
		"slow in":        "cuMemcpyHtoDAsync=2ms",
		"slow both ways": "cuMemcpyDtoHAsync=1ms,cuMemcpyHtoDAsync=2ms",
		"slow streams":   "cuMemsetD32Async=1ms,cuMemcpyDtoDAsync=1ms",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := k.newRun(t, "GM_FAKE_DEVICES=2", "GM_FAKE_WORK="+work).passes(t, program)
			r.swappedAll(t)
			if _, err := os.Stat(filepath.Join(r.dir, "pages")); err == nil {
				t.Error("there is a page of an allocator that nobody used")
			}
		})
	}
}

// swappedAll checks that all memory was returned to the driver, including host memory.
func (r *run) swappedAll(t *testing.T) {
	t.Helper()
	r.holdsNothing(t)
	if c := r.counts(t); c.PinnedHost.Current != 0 || c.PinnedHost.Allocs == 0 {
		t.Errorf("the driver has %d bytes of the host pinned, of %d registrations", c.PinnedHost.Current, c.PinnedHost.Allocs)
	}
}

func TestSwapThreads(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/swap_threads.c")
	for _, allocator := range allocators {
		t.Run(allocator, func(t *testing.T) {
			t.Parallel()
			k.newRun(t, "GM_ALLOC="+allocator).passes(t, program).swappedAll(t)
		})
	}
}

func TestSwapFork(t *testing.T) {
	k := newKit(t)
	k.newRun(t).passes(t, k.compile(t, "testdata/swap_fork.c"))
}

// TestSwapEnd ends a process while copies are running.
func TestSwapEnd(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/swap_late.c")
	for _, work := range []string{"", "cuMemcpyDtoHAsync=200ms"} {
		k.newRun(t, "GM_FAKE_WORK="+work).passes(t, program)
		k.newRun(t, "GM_FAKE_WORK="+work).passes(t, program, "_exit")
	}
}

// TestSwapFaults makes each driver call fail in turn: the first time, later, or always from then on.
func TestSwapFaults(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/swap_fault.c")
	atEnd := map[string]bool{"cuMemHostUnregister": true, "cuStreamSynchronize": true, "cuStreamDestroy": true, "cuEventDestroy": true}
	for _, call := range []string{
		"cuCtxPushCurrent", "cuStreamCreate", "cuMemHostRegister", "cuEventCreate", "cuEventRecord",
		"cuStreamWaitEvent", "cuStreamIsCapturing", "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuEventQuery", "cuEventElapsedTime",
		"cuMemHostUnregister", "cuStreamSynchronize", "cuStreamDestroy", "cuEventDestroy",
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			for _, fault := range []string{":1=1", ":2=2", ":5=999", ":40=1"} {
				r := k.newRun(t, "GM_FAKE_FAIL="+call+fault)
				r.env = append(r.env, "GM_LOG="+filepath.Join(r.dir, "log"))
				if r.do(t, program); r.rc != 0 || r.err != "" {
					t.Errorf("%s%s: exit %d\n%s", call, fault, r.rc, r.err)
					continue
				}
				r.swapFailed(t, call+fault, atEnd[call])
			}
		})
	}
}

// swapFailed checks the state after a run in which a call failed. Host memory may stay pinned only if the unpinning failed, which must be
// logged.
func (r *run) swapFailed(t *testing.T, fault string, atEnd bool) {
	t.Helper()
	var failed int
	if _, err := fmt.Sscan(r.out, &failed); err != nil || failed > 60 {
		t.Errorf("%s: %d calls of the swapper failed, %v", fault, failed, err)
	}
	log, _ := os.ReadFile(filepath.Join(r.dir, "log"))
	pinned := r.counts(t).PinnedHost.Current
	if pinned != 0 && !atEnd || pinned != 0 && len(log) == 0 {
		t.Errorf("%s: %d bytes stay pinned, and the log is %q", fault, pinned, log)
	}
	if n := strings.Count(string(log), "\n"); n > 1 && !atEnd {
		t.Errorf("%s: the log has %d lines: %s", fault, n, log)
	}
}

// BenchmarkSwap times gm_swap_out, left, in, ready and drop together on the fake driver, which shows their cost on the host.
func BenchmarkSwap(b *testing.B) {
	k := newKit(b)
	r := k.newRun(b)
	program := k.compile(b, "testdata/swap_bench.c")
	for b.Loop() {
		r.do(b, program)
		var p50, p99 float64
		if _, err := fmt.Sscan(r.out, &p50, &p99); err != nil || r.rc != 0 {
			b.Fatalf("exit %d\n%s%s", r.rc, r.out, r.err)
		}
		b.ReportMetric(p50, "p50-ns/tensor")
		b.ReportMetric(p99, "p99-ns/tensor")
	}
}
