package snapshot

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gm/formats/column"
	"gm/formats/trace"
)

// decodeShared makes the first pass over a snapshot.
func decodeShared(t *testing.T, name string) *recording {
	t.Helper()
	r := newRecording(column.NewStrings())
	end, err := decode(openShared(t, name), r, r)
	if err == nil {
		err = r.finish(end)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// records returns the events of a history, with addresses instead of slots.
func records(t *testing.T, h *history) []record {
	t.Helper()
	var all []record
	c := cursor{spool: &h.spool}
	for {
		ok, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return all
		}
		r := c.rec
		if r.op == trace.OpAlloc || r.op == trace.OpFreeRequested || r.op == trace.OpFreeCompleted {
			r.addr = h.addrs[r.addr]
		}
		all = append(all, r)
	}
}

// forward is what the allocator holds after some events of a whole history.
type forward struct {
	blocks   map[uint64]earlyBlock
	segments map[uint64]span
	mapped   map[uint64]bool // pages of 2 MiB
}

const page = 2 << 20

func (f *forward) add(r record) {
	switch r.op {
	case trace.OpAlloc:
		f.blocks[r.addr] = earlyBlock{addr: r.addr, size: r.size, stream: r.stream}
	case trace.OpFreeRequested:
		b := f.blocks[r.addr]
		b.pending = true
		f.blocks[r.addr] = b
	case trace.OpFreeCompleted:
		delete(f.blocks, r.addr)
	case trace.OpSegmentAlloc:
		f.segments[r.addr] = span{addr: r.addr, size: uint64(r.size), stream: r.stream}
	case trace.OpSegmentFree:
		delete(f.segments, r.addr)
	case trace.OpSegmentMap, trace.OpSegmentUnmap:
		for a := r.addr; a < r.addr+uint64(r.size); a += page {
			if r.op == trace.OpSegmentMap {
				f.mapped[a] = true
			} else {
				delete(f.mapped, a)
			}
		}
	}
}

// TestInitialShared forgets the first events of whole histories, and compares the state that is worked out from the
// others and the segments at the end with what the first ones leave.
func TestInitialShared(t *testing.T) {
	for _, name := range sharedFiles(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			s := decodeShared(t, name)
			h := s.devices[0]
			if len(h.segments) == 0 {
				t.Skip("the snapshot lists no segments")
			}
			all := records(t, h)
			f := &forward{map[uint64]earlyBlock{}, map[uint64]span{}, map[uint64]bool{}}
			for i, r := range all {
				if i%max(1, len(all)/50) == 0 {
					compareInitial(t, f, all[i:], h.segments)
				}
				f.add(r)
			}
			compareInitial(t, f, nil, h.segments)
		})
	}
}

func compareInitial(t *testing.T, f *forward, rest []record, segments []segment) {
	t.Helper()
	room := spoolMemory
	h := newHistory(0, &room)
	h.segments = slices.Clone(segments)
	for i := range h.segments {
		h.segments[i].born = 0
	}
	for _, r := range rest {
		if _, err := h.add(r); err != nil {
			t.Fatal(err)
		}
	}
	var odd oddities
	in := h.initial(&odd)
	if odd != (oddities{}) {
		t.Errorf("%d events left: oddities %+v", len(rest), odd)
	}
	got := &forward{map[uint64]earlyBlock{}, map[uint64]span{}, map[uint64]bool{}}
	for _, b := range in.blocks {
		b.slot, b.stack, b.pool, b.block = 0, 0, 0, 0
		got.blocks[b.addr] = b
	}
	for _, s := range in.spans {
		if !s.mapped {
			s.pool = 0
			got.segments[s.addr] = s
			continue
		}
		for a := s.addr; a < s.addr+s.size; a += page {
			got.mapped[a] = true
		}
	}
	opts := gocmp.Options{gocmp.AllowUnexported(forward{}, earlyBlock{}, span{}), cmpopts.EquateEmpty()}
	if diff := gocmp.Diff(f, got, opts); diff != "" {
		t.Fatalf("%d events left: state differs (-want +got):\n%s", len(rest), diff)
	}
}

func TestEarlyRanges(t *testing.T) {
	mapAt := func(addr, size uint64) mapping { return mapping{addr: addr, size: size} }
	unmapAt := func(addr, size uint64) mapping { return mapping{addr: addr, size: size, unmap: true} }
	at := func(addr, size uint64) segment { return segment{addr: addr, size: size, expandable: true} }
	for _, c := range []struct {
		name     string
		mappings []mapping
		segments []segment
		want     [][2]uint64
	}{
		{"nothing", nil, nil, nil},
		{"lasting", nil, []segment{at(10, 10), at(30, 5)}, [][2]uint64{{10, 10}, {30, 5}}},
		{"mapped since", []mapping{mapAt(10, 10)}, []segment{at(10, 10)}, nil},
		{"extended", []mapping{mapAt(14, 6)}, []segment{at(10, 10)}, [][2]uint64{{10, 4}}},
		{"filled", []mapping{mapAt(14, 2)}, []segment{at(10, 10)}, [][2]uint64{{10, 4}, {16, 4}}},
		{"unmapped", []mapping{unmapAt(10, 4)}, nil, [][2]uint64{{10, 4}}},
		{"unmapped and mapped", []mapping{unmapAt(10, 4), mapAt(12, 4)}, []segment{at(12, 4)}, [][2]uint64{{10, 4}}},
		{"unmapped of both", []mapping{mapAt(14, 4), unmapAt(10, 8)}, nil, [][2]uint64{{10, 4}}},
		{"joined", []mapping{unmapAt(10, 4)}, []segment{at(14, 2)}, [][2]uint64{{10, 6}}},
		{"no bytes", []mapping{unmapAt(10, 0)}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got [][2]uint64
			for _, s := range earlyRanges(c.mappings, c.segments) {
				got = append(got, [2]uint64{s.addr, s.size})
			}
			if diff := gocmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpool(t *testing.T) {
	room := 3 * chunkSize // so that it spills
	a, b := &spool{room: &room}, &spool{room: &room}
	want := map[*spool][]record{}
	for i := range int64(60_000) {
		r := record{
			op: trace.Op(i % 11), time: i, addr: uint64(i * i), size: i % 7 << 40, stream: i % 2, stack: int32(i % 3),
			tag: int32(i % 5), pool: int32(i%2) - 1,
		}
		s := a
		if i%3 == 0 || i > 50_000 {
			s = b
		}
		if err := s.append(r); err != nil {
			t.Fatal(err)
		}
		want[s] = append(want[s], r)
	}
	if a.file == nil || b.file == nil {
		t.Error("nothing was spilled")
	}
	for s, rows := range want {
		c := cursor{spool: s}
		for i, r := range rows {
			if ok, err := c.next(); !ok || err != nil || c.rec != r {
				t.Fatalf("record %d: %v, %v, %+v, want %+v", i, ok, err, c.rec, r)
			}
		}
		if ok, err := c.next(); ok || err != nil {
			t.Errorf("at the end: %v, %v", ok, err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}

func TestQueue(t *testing.T) {
	var q queue
	for i := range int64(50) {
		q = append(q, &device{history: &history{device: int32(i)}, cursor: cursor{rec: record{time: i * 37 % 10}}})
	}
	want := slices.Clone(q)
	slices.SortFunc(want, func(a, b *device) int {
		return cmp.Or(cmp.Compare(a.cursor.rec.time, b.cursor.rec.time), cmp.Compare(a.device, b.device))
	})
	q.order()
	for _, w := range want {
		if q[0] != w {
			t.Fatalf("device %d, want %d", q[0].device, w.device)
		}
		q[0] = q[len(q)-1]
		q = q[:len(q)-1]
		q.sink(0)
	}
}

func TestParseConf(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                                 {},
		"a:1,b:2":                          {"a": "1", "b": "2"},
		"a:[1:2,3:4], b : 5 ,c":            {"a": "[1:2,3:4]", "b": "5"},
		"a:1,a:2":                          {"a": "2"},
		"a:[1:2":                           {"a": "[1:2"},
		"a]:1,b:2":                         {"a]": "1,b:2"},
		"backend:cudaMallocAsync,a:True,,": {"backend": "cudaMallocAsync", "a": "True"},
	} {
		got := map[string]string{}
		for _, s := range parseConf(text) {
			got[s.key] = s.value
		}
		if !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
