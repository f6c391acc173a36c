package main

import (
	"strings"
	"testing"
)

func TestContents(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/contents.c")
	for _, name := range allocators {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k.newRun(t, "GM_ALLOC="+name).passes(t, program).holdsNothing(t)
		})
	}
}

// TestState brings a pool back to what it was.
func TestState(t *testing.T) {
	passesWithEach(t, "testdata/state.c")
}

// TestShare opens memory in another process.
func TestShare(t *testing.T) {
	passesWithEach(t, "testdata/share.c")
}

// passesWithEach runs a program with each allocator; it leaves nothing behind.
func passesWithEach(t *testing.T, source string) {
	t.Helper()
	k := newKit(t)
	program := k.compile(t, source)
	for _, name := range allocators {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k.newRun(t, "GM_ALLOC="+name).passes(t, program).holdsNothing(t)
		})
	}
}

// TestEdges calls the library with invalid arguments.
func TestEdges(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/edges.c")
	for _, name := range allocators {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := k.newRun(t, "GM_ALLOC="+name).do(t, program)
			if r.rc != 0 || r.out != "" || strings.Count(r.err, "which was not allocated here") != 2 {
				t.Fatalf("exit %d\n%s%s", r.rc, r.out, r.err)
			}
		})
	}
}
