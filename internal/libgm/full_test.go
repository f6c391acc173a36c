package main

import "testing"

// TestRelief has room made for requests that find none under a limit.
func TestRelief(t *testing.T) {
	k := newKit(t)
	k.newRun(t, "GM_LIMIT=268435456").passes(t, k.compile(t, "testdata/relief.c")).holdsNothing(t)
}
