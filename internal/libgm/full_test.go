package main

import "testing"

// TestRelief has room made for requests that find none under a limit.
func TestRelief(t *testing.T) {
	k := newKit(t)
	k.newRun(t, "GM_LIMIT=268435456").passes(t, k.compile(t, "testdata/relief.c")).holdsNothing(t)
}

// TestNoRelief has requests fail for another reason than memory: nobody makes room for them.
func TestNoRelief(t *testing.T) {
	k := newKit(t)
	k.newRun(t, "GM_FAKE_FAIL=cuMemCreate:1+=700,cuMemAlloc:1+=700", "GM_LOG=/dev/null").passes(t, k.compile(t, "testdata/relief.c"), "broken").holdsNothing(t)
}

// TestBorrow has requests that find no room served from the host.
func TestBorrow(t *testing.T) {
	k := newKit(t)
	r := k.newRun(t, "GM_LIMIT=67108864", "GM_LOG=/dev/null").passes(t, k.compile(t, "testdata/borrow.c"))
	r.swappedAll(t)
}
