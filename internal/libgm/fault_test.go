package main

import (
	"fmt"
	"testing"
)

// TestFaults has each call of the driver fail in turn: the job goes on, contents survive, and nothing leaks.
func TestFaults(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/fault.c")
	calls := []string{
		"cuMemAlloc", "cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess", "cuEventCreate", "cuEventRecord",
		"cuEventQuery", "cuStreamWaitEvent", "cuStreamSynchronize", "cuEventSynchronize",
	}
	for _, allocator := range allocators {
		t.Run(allocator, func(t *testing.T) {
			t.Parallel()
			for _, call := range calls {
				for _, fault := range []string{":2=2", ":5=1", ":9=999"} {
					r := k.newRun(t, "GM_ALLOC="+allocator, "GM_FAKE_FAIL="+call+fault, "GM_LOG=/dev/null")
					if r.do(t, program); r.rc != 0 {
						t.Errorf("%s%s: exit %d\n%s", call, fault, r.rc, r.err)
						continue
					}
					var failed, reserved int
					if _, err := fmt.Sscan(r.out, &failed, &reserved); err != nil || failed > 0 || reserved > 0 {
						t.Errorf("%s%s: %d requests failed, %d bytes are held", call, fault, failed, reserved)
					}
					r.holdsNothing(t)
				}
			}
		})
	}
}
