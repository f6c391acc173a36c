package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gm/formats/trace"
)

// step is struct step of testdata/requests.c.
type step struct{ Request, Size, Stream int64 }

// steps returns the requests of a recording.
func steps(t *testing.T, path string) []step {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all []step
	numbers, streams := map[int64]int64{}, map[int64]int64{0: 0}
	err = trace.Each(r, func(_ int64, e *trace.Event) error {
		if e.Level != trace.LevelFramework || e.Device != 0 {
			return nil
		}
		if _, ok := streams[e.Stream]; !ok {
			streams[e.Stream] = int64(len(streams))
		}
		switch e.Op {
		case trace.OpAlloc:
			if e.Size > 0 {
				numbers[e.ID] = int64(len(numbers))
				all = append(all, step{numbers[e.ID], e.Size, streams[e.Stream]})
			}
		case trace.OpFree, trace.OpFreeRequested:
			if n, ok := numbers[e.ID]; ok {
				all = append(all, step{Request: n, Size: -int64(e.Op - trace.OpFree)})
			}
		case trace.OpFreeCompleted: // at once: no other stream used it
			if last := &all[len(all)-1]; last.Size < 0 && last.Request == numbers[e.ID] {
				last.Size = 0
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSmallTakesNoMore makes the requests of recordings, those of testdata and of GM_SHARED, with small requests served by C and by Go. Memory
// and places must be the same.
func TestSmallTakesNoMore(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/requests.c")
	paths, _ := filepath.Glob("../../testdata/*.parquet")
	if shared := os.Getenv("GM_SHARED"); shared != "" && !testing.Short() {
		more, _ := filepath.Glob(filepath.Join(shared, "traces", "*.parquet"))
		paths = append(paths, more...)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			requests := steps(t, path)
			var input bytes.Buffer
			if err := binary.Write(&input, binary.NativeEndian, requests); err != nil {
				t.Fatal(err)
			}
			run := func(env ...string) (allocated, reserved int64, places uint64) {
				r := k.newRun(t, env...)
				r.in = input.Bytes()
				if _, err := fmt.Sscan(r.passes(t, program).out, &allocated, &reserved, &places); err != nil {
					t.Fatalf("it says %q: %v", r.out, err)
				}
				return allocated, reserved, places
			}
			// Where requests are recorded Go serves all.
			allocated, reserved, places := run("GM_STATS="+filepath.Join(t.TempDir(), "trace.parquet"), "GM_EVENTS=1000", "GM_LOG=/dev/null")
			allocatedByC, reservedByC, placesByC := run()
			t.Logf("%d bytes are reserved for %d in use, %d for %d where Go serves all", reservedByC, allocatedByC, reserved, allocated)
			if allocatedByC != allocated {
				t.Errorf("at most %d bytes are allocated, and %d where Go serves all", allocatedByC, allocated)
			}
			if reservedByC > reserved+reserved/200 { // times decide, too: when events pass, how much goes into stitching
				t.Errorf("%d bytes are reserved, and %d where Go serves all", reservedByC, reserved)
			}
			lent := slices.ContainsFunc(requests, func(s step) bool { return s.Size < 0 })
			if !lent && placesByC != places {
				t.Errorf("small requests lie in other places of their segments than where Go serves all")
			}
		})
	}
}

// TestSmallWaits fills a device, where a small request must wait for a block that another stream still uses.
func TestSmallWaits(t *testing.T) {
	k := newKit(t)
	k.newRun(t, "GM_LIMIT=2097152").passes(t, k.compile(t, "testdata/full.c")).holdsNothing(t)
}

// TestSmallFullTable has small requests of one thread fill C's table of blocks while another thread's large request is with the driver.
func TestSmallFullTable(t *testing.T) {
	k := newKit(t)
	k.newRun(t, "GM_FAKE_DELAY=cuMemCreate=500ms").passes(t, k.compile(t, "testdata/full_table.c")).holdsNothing(t)
}

// TestAccount compares the account with a model's, with requests served by C and by Go: large ones, too, where there is one stream.
func TestAccount(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/account.c")
	for name, stats := range map[string]string{"C": "", "Go": filepath.Join(t.TempDir(), "trace.parquet")} {
		for _, streams := range []string{"1", "4"} {
			t.Run(name+"/"+streams, func(t *testing.T) {
				t.Parallel()
				k.newRun(t, "GM_STATS="+stats, "GM_EVENTS=1000", "GM_LOG=/dev/null").passes(t, program, streams).holdsNothing(t)
			})
		}
	}
}
