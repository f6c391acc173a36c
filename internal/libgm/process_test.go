package main

import "testing"

// TestPrograms runs the programs that check their own results.
func TestPrograms(t *testing.T) {
	k := newKit(t)
	for _, source := range []string{"fork.c", "threads.c", "late.c", "settings.c", "stopped.c", "streams.c", "peers.c", "segments.c", "pools.cpp"} {
		program := k.compile(t, "testdata/"+source)
		for _, allocator := range allocators {
			t.Run(source+"/"+allocator, func(t *testing.T) {
				t.Parallel()
				k.newRun(t, "GM_ALLOC="+allocator, "GM_FAKE_DEVICES=4").passes(t, program)
			})
		}
	}
}

// TestEnd ends processes in other ways than by returning from main.
func TestEnd(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/late.c")
	k.newRun(t).passes(t, program, "_exit")
}

// TestEnvironment sets variables of Go's runtime in the environment, which the library must ignore.
func TestEnvironment(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/threads.c")
	for _, env := range []string{
		"GOGC=1", "GOGC=off", "GOGC=x", "GOMAXPROCS=1", "GOMAXPROCS=-3", "GOMAXPROCS=1000", "GOMEMLIMIT=1MiB", "GODEBUG=x=y,,",
		"GOTRACEBACK=crash", "GM_EVENTS=x",
	} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
			k.newRun(t, env).passes(t, program)
		})
	}
}
