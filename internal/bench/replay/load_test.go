package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/blocks"
)

// traceFile returns a trace as a file.
func traceFile(t *testing.T, meta trace.Meta, rows ...trace.Event) []byte {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out, meta)
	for _, text := range []string{trace.PreexistingTag(0), trace.PreexistingTag(4 << 20), "pool"} {
		w.Strings().Code(text)
	}
	var batch trace.Batch
	for i, e := range rows {
		if e.TimeNS == 0 {
			e.TimeNS = int64(1 + i)
		}
		batch.Append(e)
	}
	if err := w.Write(&batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func readerOf(t *testing.T, file []byte) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)), "t")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// planFile returns a plan as a file.
func planFile(t *testing.T, meta plan.Meta, tensors ...plan.Tensor) []byte {
	t.Helper()
	var out bytes.Buffer
	w := plan.NewWriter(&out, meta)
	var batch plan.Batch
	for _, text := range []string{"a", "b"} {
		w.Strings().Code(text)
	}
	for _, x := range tensors {
		batch.Append(x)
	}
	if err := w.Write(&batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// steps returns the steps of programs in words: the kind, the size of the tensor, the row and the time.
func steps(programs []*Program) string {
	kinds := [...]string{"alloc", "free", "request", "complete", "empty"}
	var all []string
	for _, p := range programs {
		if len(programs) > 1 {
			all = append(all, p.Name)
		}
		for i, kind := range p.Kinds {
			text := kinds[kind]
			if kind != Empty {
				text += fmt.Sprint(p.Sizes[p.Tensors[i]])
			}
			all = append(all, fmt.Sprintf("%s@%d/%d", text, p.Rows[i], p.TimesNS[i]))
		}
	}
	return strings.Join(all, " ")
}

// TestLoad holds what rows of a trace become.
func TestLoad(t *testing.T) {
	row := func(op trace.Op, id, size int64, device int32) trace.Event {
		return trace.Event{Op: op, ID: id, Size: size, Device: device}
	}
	alloc := func(id int64) trace.Event { return row(trace.OpAlloc, id, 100*id, 0) }
	free := func(id int64) trace.Event { return row(trace.OpFree, id, 0, 0) }
	request := func(id int64) trace.Event { return row(trace.OpFreeRequested, id, 0, 0) }
	done := func(id int64) trace.Event { return row(trace.OpFreeCompleted, id, 0, 0) }
	freed := row(trace.OpSegmentFree, 0, 2<<20, 0)
	freed.Addr = 1 << 40
	for _, c := range []struct {
		about string
		rows  []trace.Event
		want  string
	}{
		{"allocs and frees", []trace.Event{alloc(1), alloc(2), free(1)}, "alloc100@0/1 alloc200@1/2 free100@2/3"},
		{"a free that waits", []trace.Event{alloc(1), request(1), alloc(2), done(1)}, "alloc100@0/1 request100@1/2 alloc200@2/3 complete100@3/4"},
		{"one that does not", []trace.Event{alloc(1), request(1), done(1)}, "alloc100@0/1 free100@1/2"},
		{"one behind another", []trace.Event{alloc(1), alloc(2), request(1), request(2), done(1), done(2)},
			"alloc100@0/1 alloc200@1/2 request100@2/3 request200@3/4 complete100@4/5 complete200@5/6"},
		{"one while the cache is emptied", []trace.Event{alloc(1), request(1), freed, done(1)}, "alloc100@0/1 request100@1/2 empty@2/4 complete100@3/4"},
		{"two devices", []trace.Event{alloc(1), row(trace.OpAlloc, 2, 7, 1), free(1)}, "t[0] alloc100@0/1 free100@2/3 t[1] alloc7@1/2"},
		{"the cache was emptied", []trace.Event{alloc(1), freed, free(1)}, "alloc100@0/1 empty@1/3 free100@2/3"},
		{"at the first row", []trace.Event{freed, alloc(1)}, "empty@0/2 alloc100@1/2"},
		{"a free that is requested only", []trace.Event{alloc(1), request(1)}, "alloc100@0/1 request100@1/2"},
	} {
		t.Run(c.about, func(t *testing.T) {
			programs, err := Load(traceOf(t, trace.Meta{}, c.rows...))
			if err != nil {
				t.Fatal(err)
			}
			if got := steps(programs); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if len(programs) == 1 && programs[0].Name != "t" {
				t.Errorf("the only program is named %s", programs[0].Name)
			}
		})
	}
}

// TestLoadSegments: segments whose address or size is not known are left out.
func TestLoadSegments(t *testing.T) {
	segment := func(addr uint64, size int64, tag int32) trace.Event {
		return trace.Event{Op: trace.OpSegmentAlloc, Addr: addr, Size: size, Tag: tag}
	}
	programs, err := Load(traceOf(t, trace.Meta{}, segment(1<<40, 2<<20, 1), segment(0, 4<<20, 0), segment(2<<40, 0, 0), segment(3<<40, 6<<20, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if p := programs[0]; len(p.Segments) != 1 || p.Segments[0].Addr != 3<<40 || len(p.Initial) != 1 || p.Initial[0].Addr != 1<<40 {
		t.Errorf("segments %v, and before the recording %v", p.Segments, p.Initial)
	}
}

// TestLoadPlan holds what the tensors of a plan become: their steps by row, also those of several devices, the cache emptied in between at the time
// of the step before it, and arenas as large as what is in them.
func TestLoadPlan(t *testing.T) {
	meta := plan.Meta{Peak: 4096, Alignment: 512, Rows: 20, End: 20, Solver: "none", Emptied: []int64{0, 1, 0, 5, 3, 6}}
	file := planFile(t, meta,
		plan.Tensor{ID: 1, Size: 1000, Alloc: 2, Free: 8, AllocNS: 102, FreeNS: 108, Arena: 2, Offset: 512},
		plan.Tensor{ID: 2, Size: 512, Alloc: 4, Free: 6, AllocNS: 104, FreeNS: 106, Arena: 2},
		plan.Tensor{ID: 3, Size: 300, Alloc: 7, Free: 20, AllocNS: 107, FreeNS: 120, Arena: 1},
		plan.Tensor{ID: 4, Size: 200, Alloc: 9, Free: 19, AllocNS: 109, FreeNS: 119, Device: 1, Arena: 1},
	)
	r, err := plan.NewReader(bytes.NewReader(file), int64(len(file)), "p")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := LoadPlan(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = "p[0] empty@1/102 alloc1000@2/102 alloc512@4/104 empty@5/104 free512@6/106 alloc300@7/107 free1000@8/108 p[1] alloc200@9/109 free200@19/119"
	if got := steps(programs); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if p := programs[0]; fmt.Sprint(p.Arenas) != "[1512 300]" || p.Placements[2].Arena != 1 || p.Placements[0].Offset != 512 || p.Partial {
		t.Errorf("arenas %v, placements %v, partial: %v", p.Arenas, p.Placements, p.Partial)
	}
}

// TestLoadPlanPartial: a plan of a part of a trace, or of one that began with memory in use, is partial.
func TestLoadPlanPartial(t *testing.T) {
	for _, c := range []struct {
		preexisting, first, end int64
		want                    bool
	}{{0, 0, 20, false}, {1, 0, 20, true}, {0, 1, 20, true}, {0, 0, 19, true}, {1, 1, 19, true}} {
		meta := plan.Meta{Peak: 512, Alignment: 512, Rows: 20, First: c.first, End: c.end, Solver: "none", Preexisting: c.preexisting}
		file := planFile(t, meta, plan.Tensor{ID: 1, Size: 100, Alloc: 2, Free: 8})
		r, err := plan.NewReader(bytes.NewReader(file), int64(len(file)), "p")
		if err != nil {
			t.Fatal(err)
		}
		if programs, err := LoadPlan(r); err != nil || programs[0].Partial != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestNames: what is read from standard input is named after what it records as its source.
func TestNames(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, file []byte) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, file, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	row := trace.Event{Op: trace.OpAlloc, ID: 1, Size: 100}
	named := write("named", traceFile(t, trace.Meta{Source: "a job"}, row))
	nameless := write("nameless", traceFile(t, trace.Meta{}, row))
	planned := write("plan", planFile(t, plan.Meta{Peak: 512, Alignment: 512, Rows: 3, End: 3, Solver: "none", Source: "a plan"},
		plan.Tensor{ID: 1, Size: 100, Alloc: 1, Free: 2}))
	defer func(stdin *os.File) { os.Stdin = stdin }(os.Stdin)
	for _, c := range []struct {
		file  string
		stdin bool
		want  string
	}{
		{named, false, named}, {named, true, "a job"}, {nameless, false, nameless}, {nameless, true, "standard input"}, {planned, false, planned},
		{planned, true, "a plan"},
	} {
		name := c.file
		if c.stdin {
			in, err := os.Open(c.file)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			os.Stdin, name = in, "-"
		}
		programs, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if programs[0].Name != c.want {
			t.Errorf("%s is named %s, want %s", name, programs[0].Name, c.want)
		}
		if stacks, err := programs[0].Stacks([]int64{0}); err != nil || (stacks == nil) != (c.file == planned) {
			t.Errorf("%s: stacks %v, %v", name, stacks, err)
		}
		again, err := Open(c.file)
		if err != nil {
			t.Fatal(err)
		}
		p := programs[0]
		if !p.SameFile(p) || p.SameFile(again[0]) || (&Program{}).SameFile(&Program{}) {
			t.Errorf("%s: programs of other files are of the same one", name)
		}
	}
}

// TestInitialAgainstDefinition: the memory of before a recording is segments that do not overlap, with pages that touch joined, and in each the
// tensors that begin in it, one at an address.
func TestInitialAgainstDefinition(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var in initial
		var all []blocks.Segment
		for i, addr := range rng.Perm(8)[:rng.IntN(7)] {
			s := blocks.Segment{Addr: uint64(100 + 10*addr), Size: 10 * (1 + rng.Int64N(8)/6), Pool: blocks.Pool(rng.IntN(6) / 5), Expandable: rng.IntN(3) > 0}
			e := trace.Event{Op: trace.OpSegmentAlloc, Addr: s.Addr, Size: s.Size, Pool: int32(s.Pool)}
			if s.Expandable {
				e.Op = trace.OpSegmentMap
			}
			if rng.IntN(6) == 0 {
				s.Stream, e.Stream = 1, 1
			}
			in.add(&e, 0, int64(i))
			all = append(all, s)
		}
		slices.SortFunc(all, func(a, b blocks.Segment) int { return cmp.Compare(a.Addr, b.Addr) })
		var want []blocks.Segment
		end := uint64(0)
		for _, s := range all {
			if s.Addr < end {
				continue
			}
			end = s.Addr + uint64(s.Size)
			if k := len(want) - 1; k >= 0 && s.Expandable && want[k].Expandable && want[k].Addr+uint64(want[k].Size) == s.Addr &&
				want[k].Stream == s.Stream && want[k].Pool == s.Pool {
				want[k].Size += s.Size
				continue
			}
			want = append(want, s)
		}
		tensors := map[uint64]bool{}
		for i := range rng.Int64N(9) {
			addr := uint64(95 + rng.IntN(100))
			if tensors[addr] { // it does not matter which of two is left out
				continue
			}
			tensors[addr] = true
			in.add(&trace.Event{Op: trace.OpAlloc, Addr: addr, Size: 3}, 7, i)
			for k := range want {
				if s := &want[k]; s.Addr <= addr && addr < s.Addr+uint64(s.Size) {
					s.Live = append(s.Live, blocks.Held{Addr: addr, Size: 3, Block: 7})
				}
			}
		}
		n := 0
		for k := range want {
			slices.SortFunc(want[k].Live, func(a, b blocks.Held) int { return cmp.Compare(a.Addr, b.Addr) })
			n += len(want[k].Live)
		}
		got, keys := in.settle()
		if fmt.Sprint(got) != fmt.Sprint(want) || len(keys) != n {
			t.Fatalf("seed %d:\n%+v and %d tensors, want\n%+v and %d", seed, got, len(keys), want, n)
		}
	}
}

// TestInitialTwice: of two tensors at one address there is one.
func TestInitialTwice(t *testing.T) {
	var in initial
	in.add(&trace.Event{Op: trace.OpSegmentAlloc, Addr: 100, Size: 10}, 0, 0)
	for key, addr := range []uint64{102, 102, 104, 99} {
		in.add(&trace.Event{Op: trace.OpAlloc, Addr: addr, Size: 1}, 0, int64(key))
	}
	if segments, keys := in.settle(); len(segments[0].Live) != 2 || len(keys) != 2 || keys[1] != 2 {
		t.Errorf("%+v, %v", segments, keys)
	}
}
