package main

import "testing"

// TestWarm frees large blocks and requests them again.
func TestWarm(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/warm.c")
	k.newRun(t, "GM_LOG=/dev/null").passes(t, program).holdsNothing(t)
	k.newRun(t).passes(t, program, "threads").holdsNothing(t)
}
