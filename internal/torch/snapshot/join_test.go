package snapshot

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gm/formats/column"
	"gm/formats/trace"
)

// joinBytes joins snapshots. Those that are refused are left out; the errors are returned.
func joinBytes(t testing.TB, dumps [][]byte) (*imported, []error) {
	t.Helper()
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{})
	j := NewJoin(w.Strings())
	var errs []error
	fresh := 0
	j.Fresh = func(trace.Event) { fresh++ }
	for i, dump := range dumps {
		before := fresh
		if err := j.Add(bytes.NewReader(dump), fmt.Sprintf("history.%d.pickle", i)); err != nil {
			errs = append(errs, err)
			if fresh != before {
				t.Error("a snapshot that was refused has fresh entries")
			}
		}
	}
	got := &imported{}
	if err := j.Write(w, func(s string) { got.warnings = append(got.warnings, s) }); err != nil {
		t.Fatal(err)
	}
	j.Describe(w.Meta())
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if room := j.rec.room; room != spoolMemory {
		t.Errorf("%d bytes of room at the end, want %d", room, spoolMemory)
	}
	readBack(t, w, &file, got)
	return got, errs
}

// recordingOf makes the first pass over a gzipped snapshot; its history is returned by device.
func recordingOf(t *testing.T, name string) (*recording, [][]record) {
	t.Helper()
	rec := decodeShared(t, name)
	var traces [][]record
	for device := range int32(len(rec.devices)) {
		traces = append(traces, records(t, rec.devices[device]))
	}
	return rec, traces
}

// cutting says how histories are cut into what snapshots hold of them.
type cutting struct {
	ring   int  // entries
	step   int  // fresh entries of a snapshot, about
	jitter int  // µs by which the times of a snapshot are off, at most
	late   bool // a snapshot's own entry comes after the history was copied, as in PyTorch 2.11, and not before
}

// cut returns what the snapshots hold, and the entries of all. Some entries come while a snapshot is taken.
func (c cutting) cut(rng *rand.Rand, traces [][]record) (dumps [][][]record, whole [][]record) {
	whole = make([][]record, len(traces))
	left := slices.Clone(traces)
	for final := false; !final; {
		final = !slices.ContainsFunc(left, func(rest []record) bool { return len(rest) > 0 })
		dump := make([][]record, len(traces))
		shift := int64(rng.IntN(2*c.jitter+1)-c.jitter) * nsPerUs
		for d := range traces {
			take := func(n int) {
				n = min(n, len(left[d]))
				whole[d] = append(whole[d], left[d][:n]...)
				left[d] = left[d][n:]
			}
			take(c.step/2 + rng.IntN(c.step))
			if n := len(whole[d]); c.late {
				dump[d] = shifted(whole[d][max(0, n-c.ring):], shift)
				take(rng.IntN(6) / 3)
			}
			if n := len(whole[d]); n > 0 && !final {
				whole[d] = append(whole[d], record{op: trace.OpSnapshot, time: whole[d][n-1].time, size: int64(n / 3 * 512), pool: -1})
			}
			if !c.late {
				take(rng.IntN(3))
				dump[d] = shifted(whole[d][max(0, len(whole[d])-c.ring):], shift)
			}
		}
		dumps = append(dumps, dump)
	}
	return dumps, whole
}

func shifted(entries []record, ns int64) []record {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].time += ns
	}
	return entries
}

func dumpsOf(rec *recording, cut [][][]record) [][]byte {
	var dumps [][]byte
	for _, traces := range cut {
		dumps = append(dumps, makeDump(rec, traces))
	}
	return dumps
}

// recordings returns the recordings of the repository.
func recordings(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("../../../testdata/snapshots/*.pickle.gz")
	if err != nil || len(names) == 0 {
		t.Fatal("no recordings", err)
	}
	return append(names, "../../../testdata/settings/two-devices.pickle.gz", "../../../testdata/settings/ring.pickle.gz")
}

// TestJoin cuts recordings of real jobs into the overlapping histories of a ring, and compares what they are joined
// to with the import of the whole.
func TestJoin(t *testing.T) {
	for _, name := range recordings(t) {
		t.Run(filepath.Base(name), func(t *testing.T) { compareJoin(t, name, 1, 4, 25) })
	}
}

func TestJoinShared(t *testing.T) {
	for _, name := range sharedFiles(t) {
		t.Run(filepath.Base(name), func(t *testing.T) { compareJoin(t, name, 5) })
	}
}

// compareJoin cuts a recording into about so many snapshots.
func compareJoin(t *testing.T, name string, dumps ...int) {
	rng := rand.New(rand.NewPCG(1, 2))
	rec, traces := recordingOf(t, name)
	most := 0
	for _, all := range traces {
		most = max(most, len(all))
	}
	for _, n := range dumps {
		step := max(most/n, 4)
		for _, late := range []bool{false, true} {
			cut, whole := cutting{ring: step*8/5 + 64, step: step, late: late}.cut(rng, traces)
			want, err := importBytes(t, "whole", makeDump(rec, whole))
			if err != nil {
				t.Fatal(err)
			}
			got, errs := joinBytes(t, dumpsOf(rec, cut))
			want.meta = got.meta
			if diff := cmp.Diff(want.String(), got.String()); diff != "" || len(errs) > 0 {
				t.Fatalf("%d snapshots, errors %v: rows differ (-want +got):\n%.3000s", len(cut), errs, diff)
			}
		}
	}
}

// TestDump imports what the writer of these tests makes of recordings.
func TestDump(t *testing.T) {
	for _, name := range recordings(t) {
		rec, traces := recordingOf(t, name)
		var data bytes.Buffer
		if _, err := io.Copy(&data, openShared(t, name)); err != nil {
			t.Fatal(err)
		}
		want, err := importBytes(t, "x", data.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got, err := importBytes(t, "x", makeDump(rec, traces))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutStacks(want), withoutStacks(got)); diff != "" {
			t.Errorf("%s: rows differ (-want +got):\n%.3000s", name, diff)
		}
	}
}

// withoutStacks leaves stacks out, whose frames may be too long to be written as a name alone.
func withoutStacks(g *imported) []string {
	var rows []string
	for _, row := range g.rows {
		head, rest, _ := strings.Cut(row, " stack=")
		rows = append(rows, head+rest[strings.LastIndex(rest, " tag="):])
	}
	return rows
}

var rowTime = regexp.MustCompile(`^\d+ `)

// perDevice returns the rows without times and ids, by device.
func perDevice(g *imported) map[string][]string {
	out := map[string][]string{}
	for _, row := range g.rows {
		row = rowTime.ReplaceAllString(row, "")
		row = regexp.MustCompile(`id=\d+ `).ReplaceAllString(row, "")
		device := row[strings.Index(row, "dev="):]
		device = device[:strings.Index(device, " ")]
		out[device] = append(out[device], row)
	}
	return out
}

// TestJoinJitter joins snapshots that do not agree on the times of the entries that they share.
func TestJoinJitter(t *testing.T) {
	for i, name := range []string{"settings/two-devices", "snapshots/resnet50x", "snapshots/streams"} {
		rec, traces := recordingOf(t, "../../../testdata/"+name+".pickle.gz")
		rec.marks = nil
		joinJittered(t, rec, traces, cutting{ring: 400, step: 200, jitter: 4999, late: i%2 == 0})
	}
}

// TestJoinLoop joins the history of a loop, of which nothing but the times tells one turn from another.
func TestJoinLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	var all []record
	now := int64(1_700_000_000_000_000) * nsPerUs
	for range 20_000 {
		for _, op := range []trace.Op{trace.OpAlloc, trace.OpFreeRequested, trace.OpFreeCompleted} {
			if now += nsPerUs * int64(rng.IntN(3)); rng.IntN(200) == 0 {
				now += nsPerUs * int64(rng.IntN(50))
			}
			all = append(all, record{op: op, time: now, addr: 4096, size: 512, pool: -1})
		}
	}
	rec := newRecording(column.NewStrings())
	for _, late := range []bool{false, true} {
		joinJittered(t, rec, [][]record{all}, cutting{ring: 4000, step: 2000, jitter: 3000, late: late})
	}
}

func joinJittered(t *testing.T, rec *recording, traces [][]record, c cutting) {
	t.Helper()
	cut, whole := c.cut(rand.New(rand.NewPCG(3, 4)), traces)
	want, err := importBytes(t, "whole", makeDump(rec, whole))
	if err != nil {
		t.Fatal(err)
	}
	got, errs := joinBytes(t, dumpsOf(rec, cut))
	if diff := cmp.Diff(perDevice(want), perDevice(got)); diff != "" || len(errs) > 0 {
		t.Errorf("errors %v: rows differ (-want +got):\n%.3000s", errs, diff)
	}
	if len(got.warnings) > 0 {
		t.Errorf("warnings %q", got.warnings)
	}
}

// TestJoinGap joins snapshots of which some are missing. The rows are valid, or they could not be written.
func TestJoinGap(t *testing.T) {
	rec, traces := recordingOf(t, "../../../testdata/snapshots/resnet50x.pickle.gz")
	cut, _ := cutting{ring: 500, step: 200}.cut(rand.New(rand.NewPCG(5, 6)), traces)
	dumps := dumpsOf(rec, cut)
	all, _ := joinBytes(t, dumps)
	got, errs := joinBytes(t, slices.Concat(dumps[:5], dumps[9:12], dumps[15:]))
	if len(errs) > 0 || len(got.rows) >= len(all.rows) || len(got.rows) < len(all.rows)/2 {
		t.Errorf("errors %v, %d rows of %d", errs, len(got.rows), len(all.rows))
	}
	want := "2 snapshots begin after the one before ended: entries between them, at least one each, are lost"
	if !slices.Contains(got.warnings, want) {
		t.Errorf("warnings %q, want %q", got.warnings, want)
	}
	if len(all.warnings) > 0 {
		t.Errorf("warnings of all: %q", all.warnings)
	}
}

// TestJoinEmptied joins snapshots between which the ring was emptied, and its entries lost by nobody.
func TestJoinEmptied(t *testing.T) {
	rec, traces := recordingOf(t, "../../../testdata/snapshots/gpt2.pickle.gz")
	all := traces[0]
	half := append(slices.Clone(all[:len(all)/2]), record{op: trace.OpSnapshot, time: all[len(all)/2].time, pool: -1})
	rest := append([]record{half[len(half)-1]}, all[len(all)/2:]...)
	rest[0].size++
	dumps := [][]byte{makeDump(rec, [][]record{half}), makeDump(rec, [][]record{rest[:1]}), makeDump(rec, [][]record{rest})}
	want, err := importBytes(t, "whole", makeDump(rec, [][]record{append(half, rest...)}))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := joinBytes(t, dumps)
	if diff := cmp.Diff(want.rows, got.rows); diff != "" {
		t.Errorf("rows differ (-want +got):\n%.3000s", diff)
	}
	warning := "1 snapshots begin after the history was emptied: entries between them and the one before may be lost"
	if diff := cmp.Diff([]string{warning}, got.warnings); diff != "" {
		t.Error(diff)
	}
}

// TestJoinCutOff adds snapshots that are cut off between whole ones.
func TestJoinCutOff(t *testing.T) {
	rec, traces := recordingOf(t, "../../../testdata/settings/two-devices.pickle.gz")
	cut, _ := cutting{ring: 1000, step: 200}.cut(rand.New(rand.NewPCG(7, 8)), traces)
	dumps := dumpsOf(rec, cut)
	want, _ := joinBytes(t, dumps)
	var broken [][]byte
	for i, dump := range dumps {
		broken = append(broken, dump[:len(dump)*(i+1)/(len(dumps)+1)], dump)
	}
	got, errs := joinBytes(t, broken)
	if len(errs) != len(dumps) {
		t.Errorf("%d errors of %d", len(errs), len(dumps))
	}
	for i, err := range errs {
		if text := err.Error(); !strings.HasPrefix(text, fmt.Sprintf("history.%d.pickle: read snapshot: ", 2*i)) ||
			!strings.Contains(text, "cut off") || strings.Contains(text, "\n") {
			t.Errorf("error %v", err)
		}
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("rows differ (-want +got):\n%.3000s", diff)
	}
}

func TestJoinNothing(t *testing.T) {
	got, errs := joinBytes(t, nil)
	if len(got.rows)+len(got.warnings)+len(errs) > 0 {
		t.Errorf("%v, %v", got, errs)
	}
}

func TestOverlap(t *testing.T) {
	alloc := func(us, addr int64) record {
		return record{op: trace.OpAlloc, time: us * nsPerUs, addr: uint64(addr), size: 512}
	}
	taken := func(us, size int64) record { return record{op: trace.OpSnapshot, time: us * nsPerUs, size: size} }
	for _, c := range []struct {
		name          string
		before, after []record
		old           int64
		gap           bool
	}{
		{"first", nil, []record{alloc(1, 1), taken(2, 9)}, 0, false},
		{"nothing new", []record{alloc(1, 1), taken(2, 9)}, []record{alloc(1, 1), taken(2, 9), taken(3, 9)}, 2, false},
		{"after it", []record{taken(2, 9), alloc(3, 4)}, []record{taken(2, 9), alloc(3, 4), alloc(4, 5), taken(5, 9)}, 2, false},
		{"ring full", []record{alloc(1, 1), alloc(2, 2), taken(3, 9)}, []record{taken(4, 9), alloc(5, 1), taken(6, 9)}, 1, false},
		{"nearest", []record{taken(100, 9)}, []record{taken(90, 9), alloc(99, 1), taken(101, 9), taken(120, 9)}, 3, false},
		{"what is before differs", []record{alloc(1, 1), taken(100, 9)}, []record{alloc(1, 1), taken(99, 9), alloc(99, 2), taken(100, 9)}, 2, false},
		{"overrun", []record{alloc(1, 1), taken(2, 9)}, []record{alloc(20_000, 1), taken(20_001, 9)}, 0, true},
		{"another size", []record{taken(2, 9)}, []record{alloc(1, 1), taken(2, 8)}, 0, true},
		{"copied first", []record{alloc(1, 1), alloc(2, 2)}, []record{alloc(1, 1), alloc(2, 2), taken(3, 9), alloc(4, 3)}, 2, false},
		{"copied first, full", []record{alloc(1, 1), alloc(2, 2)}, []record{alloc(2, 2), taken(3, 9), alloc(4, 3)}, 1, false},
		{"entries between", []record{alloc(1, 1), alloc(2, 2)}, []record{alloc(2, 2), alloc(3, 3), taken(3, 9), alloc(4, 3)}, 1, false},
		{"marked", []record{alloc(100, 1)}, []record{alloc(98, 1), alloc(99, 1), taken(101, 9), alloc(102, 1)}, 2, false},
		{"times tell", []record{alloc(1, 1), alloc(3, 1), alloc(9, 1)},
			[]record{alloc(1, 1), alloc(3, 1), alloc(9, 1), alloc(10, 1), alloc(30, 1)}, 3, false},
		{"times tell, off by 1 ms", []record{alloc(1, 1), alloc(3, 1), alloc(9, 1)},
			[]record{alloc(1001, 1), alloc(1003, 1), alloc(1009, 1), alloc(1010, 1), alloc(1030, 1)}, 3, false},
		{"no snapshot, overrun", []record{alloc(1, 1), alloc(2, 2)}, []record{alloc(3, 3), alloc(4, 4)}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := spoolMemory
			first := newPiece(&room, tail{})
			for _, r := range c.before {
				if err := first.add(r); err != nil {
					t.Fatal(err)
				}
			}
			second := newPiece(&room, first.tail)
			for _, r := range c.after {
				if err := second.add(r); err != nil {
					t.Fatal(err)
				}
			}
			if old, reaches := second.overlap(); old != c.old || reaches == c.gap {
				t.Errorf("%d old entries, reaches %v; want %d, %v", old, reaches, c.old, !c.gap)
			}
		})
	}
}

// FuzzJoin adds two snapshots, either of which may be refused. What is written is checked by the trace's writer.
func FuzzJoin(f *testing.F) {
	for _, name := range []string{"small-p4.pickle", "small-cpp.pickle", "old.pickle", "odd.pickle", "list.pickle"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, data)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		joinBytes(t, [][]byte{first, second, first})
	})
}
