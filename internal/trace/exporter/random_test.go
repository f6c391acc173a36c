package exporter

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"gm/formats/trace"
)

// randomTrace is a trace that keeps the rules, but not those of an allocator: blocks overlap, lie in no segment, and segments
// come and go as they like.
func randomTrace(t testing.TB, seed uint64, n int) file {
	rng := rand.New(rand.NewPCG(seed, 1))
	texts := []string{"", "main (a.py:1);f (b.py:2)", "odd;; (x) (y:z)", trace.PreexistingTag(0), trace.PreexistingTag(4096), "1.0", "graph", "memory by=nccl", "x END"}
	segments := seed%3 > 0
	var rows []trace.Event
	var live, pending []int64
	id, now := int64(0), int64(0)
	take := func(from *[]int64) int64 {
		i := rng.IntN(len(*from))
		taken := (*from)[i]
		*from = append((*from)[:i], (*from)[i+1:]...)
		return taken
	}
	for range n {
		now += rng.Int64N(3000)
		e := trace.Event{
			TimeNS: now, Addr: uint64(rng.IntN(64)) << 18, Size: 1 + rng.Int64N(4<<20), Device: int32(rng.IntN(2)), Stream: rng.Int64N(3) - 1,
			Pool: []int32{0, 5, 6}[rng.IntN(3)], Stack: int32(rng.IntN(3)), Tag: []int32{0, 3, 4, 7, 8}[rng.IntN(5)], Level: trace.Level(rng.IntN(5) / 4),
		}
		switch op := rng.IntN(12); {
		case op < 4:
			id++
			e.Op, e.ID = trace.OpAlloc, id
			live = append(live, id)
		case op < 6 && len(live) > 0:
			e.Op, e.ID = trace.OpFree, take(&live)
		case op < 7 && len(live) > 0:
			e.Op, e.ID = trace.OpFreeRequested, take(&live)
			pending = append(pending, e.ID)
		case op < 8 && len(pending) > 0:
			e.Op, e.ID = trace.OpFreeCompleted, take(&pending)
		case op < 11 && segments:
			e.Op = trace.OpSegmentAlloc + trace.Op(rng.IntN(4))
		default:
			e.Op = trace.OpOOM + trace.Op(rng.IntN(4))
		}
		rows = append(rows, e)
	}
	return made(t, trace.Meta{AllocConf: "max_split_size_mb:64,roundup_power2_divisions:4,unknown:1"}, texts, rows)
}

// TestRandom exports traces that no allocator would make. The results must be readable, and the pieces of each segment must tile it.
func TestRandom(t *testing.T) {
	for seed := range uint64(100) {
		checkExports(t, randomTrace(t, seed, 400))
	}
	// Without rows of segments, only overlapping blocks are left out.
	x := randomTrace(t, 0, 400)
	out, _ := x.written(t, Pickle)
	checkSnapshot(t, out, "")
}

func checkExports(t *testing.T, x file) {
	t.Helper()
	for _, as := range []Format{CSV, RMM, STAlloc, Pickle, Perfetto} {
		out, _ := x.written(t, as)
		again, _ := x.written(t, as)
		if !bytes.Equal(out, again) {
			t.Fatalf("%s differs from time to time", as)
		}
		switch as {
		case Perfetto:
			if !json.Valid(out) {
				t.Fatal("perfetto: no JSON")
			}
		case CSV:
			if diff := firstDifference(numbered(x.rows(t, every)), numbered(imported(t, bytes.NewReader(out)).rows(t, every))); diff != "" {
				t.Fatal(diff)
			}
		default:
			if len(out) > 0 { // as a trace of STAlloc without allocations is
				imported(t, bytes.NewReader(out))
			}
		}
	}
	checkHeaps(t, x)
}

func FuzzExport(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(seed, uint16(100))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		checkExports(t, randomTrace(t, seed, 1+int(n)%1000))
	})
}

// checkHeaps follows the heaps of a trace.
func checkHeaps(t *testing.T, x file) {
	t.Helper()
	e := &export{open: x.open}
	survey, err := e.survey()
	if err != nil {
		t.Fatal(err)
	}
	s := newSnapshot(e, survey)
	if err := s.readEnd(); err != nil {
		t.Fatal(err)
	}
	for _, h := range s.heaps {
		for _, seg := range h.segments {
			next := seg.addr
			for _, p := range seg.pieces() {
				if p.addr != next || p.size == 0 || p.block != nil && uint64(p.block.size) > p.size {
					t.Fatalf("a piece of %d bytes at %#x, expected at %#x, of segment %+v", p.size, p.addr, next, seg)
				}
				next += p.size
			}
			if next != seg.addr+seg.size {
				t.Fatalf("the pieces end at %#x, segment %+v", next, seg)
			}
		}
	}
}
