package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFaults makes each driver call fail once, at each position at which it is made (GM_EVERY=1) or at some of them. The job must go on,
// contents survive, and nothing leak.
func TestFaults(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/fault.c")
	for _, allocator := range allocators {
		t.Run(allocator, func(t *testing.T) {
			t.Parallel()
			runs := 0
			for i, call := range driverCalls {
				at, made := 1, true
				for ; made; at = next(at) {
					fault := fmt.Sprintf("%s:%d=%d", call, at, errorCodes[(i+at)%len(errorCodes)])
					made = k.fault(t, program, allocator, fault)
					runs++
				}
			}
			t.Logf("%d runs", runs)
		})
	}
}

// divisor makes requests smaller for the allocator with the smallest pieces of memory, which the fake driver is slow to create.
func divisor(allocator string) string {
	if allocator == "gmlake" {
		return "8"
	}
	return "1"
}

// next returns the position to try after a position.
func next(at int) int {
	if os.Getenv("GM_EVERY") == "1" {
		return at + 1
	}
	return 3*at + 1
}

// fault runs a job with a fault and reports whether the call that fails was made.
func (k kit) fault(t *testing.T, program, allocator, fault string) bool {
	t.Helper()
	r := k.newRun(t, "GM_ALLOC="+allocator, "GM_FAKE_FAIL="+fault, "GM_LOG=/dev/null")
	var failed, reserved, faults int
	if r.do(t, program, divisor(allocator)); r.rc != 0 {
		t.Errorf("%s: exit %d\n%s", fault, r.rc, r.err)
	} else if _, err := fmt.Sscan(r.out, &failed, &reserved, &faults); err != nil || failed > 0 || reserved > 0 {
		t.Errorf("%s: %d requests failed, %d bytes are held", fault, failed, reserved)
	}
	r.holdsNothing(t)
	return faults > 0
}

// TestFaultsForever makes each driver call fail from a position on. Requests fail; nothing worse may happen.
func TestFaultsForever(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/fault.c")
	for _, allocator := range allocators {
		t.Run(allocator, func(t *testing.T) {
			t.Parallel()
			for _, call := range driverCalls {
				r := k.newRun(t, "GM_ALLOC="+allocator, "GM_FAKE_FAIL="+call+":20+=700", "GM_LOG=/dev/null")
				r.do(t, program, divisor(allocator))
				if own := r.rc == 1 && strings.Contains(r.err, "not (cu"); r.rc != 0 && !own { // a call of the program may fail, too
					t.Errorf("%s: exit %d\n%s", call, r.rc, r.err)
				}
			}
		})
	}
}

// TestFaultsAtEachPosition makes each driver call of private pools, of their restored states, and of small requests fail at each position,
// once and from there on.
func TestFaultsAtEachPosition(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/fault_each.c")
	for _, allocator := range []string{"stitch", "torch"} {
		for _, scenario := range []string{"small", "full", "pools", "restore"} {
			t.Run(allocator+"/"+scenario, func(t *testing.T) {
				t.Parallel()
				r := k.newRun(t, "GM_ALLOC="+allocator, "GM_LOG=/dev/null")
				r.passes(t, program, append([]string{scenario}, driverCalls...)...)
				r.holdsNothing(t)
				t.Logf("faults, requests that failed: %s", r.out)
			})
		}
	}
}

// shareCalls are the driver calls by which memory is shared with another process.
var shareCalls = []string{
	"cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", "cuIpcGetMemHandle", "cuIpcOpenMemHandle", "cuIpcCloseMemHandle",
	"cuMemAddressReserve", "cuMemMap", "cuMemSetAccess", "cuMemRelease", "cuMemUnmap", "cuMemAddressFree", "cuCtxSynchronize",
	"cuMemAlloc", "cuMemFree", "cuMemCreate", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode",
}

// TestShareFaults makes each of these calls fail at each position, in the process that shares and in the one that opens. What cannot be
// opened is refused, contents stay, and nothing leaks.
func TestShareFaults(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/share.c")
	for _, allocator := range []string{"stitch", "torch"} {
		for _, side := range []string{"here", "there"} {
			t.Run(allocator+"/"+side, func(t *testing.T) {
				t.Parallel()
				r := k.newRun(t, "GM_ALLOC="+allocator, "GM_LOG=/dev/null")
				r.passes(t, program, append([]string{side}, shareCalls...)...)
				r.holdsNothing(t)
				t.Logf("faults: %s", r.out)
			})
		}
	}
}
