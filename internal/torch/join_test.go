package torch

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

// recordingOf makes the first pass over a gzipped snapshot; its history is returned by device, with an entry of a
// snapshot after each number of entries that cuts returns.
func recordingOf(t *testing.T, name string) (*recording, [][]record) {
	t.Helper()
	rec := decodeShared(t, name)
	var traces [][]record
	for device := range int32(len(rec.devices)) {
		traces = append(traces, records(t, rec.devices[device]))
	}
	return rec, traces
}

// rings cuts histories into what rings of the given length would have held at some snapshots, and returns the
// entries of all, too. After some of the snapshots' own entries there are more.
func rings(rng *rand.Rand, traces [][]record, ring, step, jitter int) (cut [][][]record, whole [][]record) {
	whole = make([][]record, len(traces))
	taken := make([]int, len(traces))
	for done := false; !done; {
		done = true
		dump := make([][]record, len(traces))
		shift := int64(rng.IntN(2*jitter+1)-jitter) * nsPerUs
		for d, all := range traces {
			n := min(step/2+rng.IntN(step), len(all)-taken[d])
			whole[d] = append(whole[d], all[taken[d]:taken[d]+n]...)
			taken[d] += n
			if len(whole[d]) == 0 {
				continue
			}
			time := whole[d][len(whole[d])-1].time
			whole[d] = append(whole[d], record{op: trace.OpSnapshot, time: time, size: int64(n / 3 * 512), pool: -1})
			n = min(rng.IntN(3), len(all)-taken[d])
			whole[d] = append(whole[d], all[taken[d]:taken[d]+n]...)
			taken[d] += n
			done = done && taken[d] == len(all)
			held := slices.Clone(whole[d][max(0, len(whole[d])-ring):])
			for i := range held {
				held[i].time += shift
			}
			dump[d] = held
		}
		cut = append(cut, dump)
	}
	return cut, whole
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
	names, err := filepath.Glob("../../testdata/snapshots/*.pickle.gz")
	if err != nil || len(names) == 0 {
		t.Fatal("no recordings", err)
	}
	return append(names, "../../testdata/settings/two-devices.pickle.gz", "../../testdata/settings/ring.pickle.gz")
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
		cut, whole := rings(rng, traces, 2*step+8, step, 0)
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
	for _, name := range []string{"../../testdata/settings/two-devices.pickle.gz", "../../testdata/snapshots/resnet50x.pickle.gz"} {
		rec, traces := recordingOf(t, name)
		rec.marks = nil
		cut, whole := rings(rand.New(rand.NewPCG(3, 4)), traces, 500, 200, 4999)
		want, err := importBytes(t, "whole", makeDump(rec, whole))
		if err != nil {
			t.Fatal(err)
		}
		got, errs := joinBytes(t, dumpsOf(rec, cut))
		if diff := cmp.Diff(perDevice(want), perDevice(got)); diff != "" || len(errs) > 0 {
			t.Errorf("%s: errors %v: rows differ (-want +got):\n%.3000s", name, errs, diff)
		}
		if len(got.warnings) > 0 {
			t.Errorf("%s: warnings %q", name, got.warnings)
		}
	}
}

// TestJoinGap joins snapshots of which some are missing. The rows are valid, or they could not be written.
func TestJoinGap(t *testing.T) {
	rec, traces := recordingOf(t, "../../testdata/snapshots/resnet50x.pickle.gz")
	cut, _ := rings(rand.New(rand.NewPCG(5, 6)), traces, 500, 200, 0)
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

// TestJoinCutOff adds snapshots that are cut off between whole ones.
func TestJoinCutOff(t *testing.T) {
	rec, traces := recordingOf(t, "../../testdata/settings/two-devices.pickle.gz")
	cut, _ := rings(rand.New(rand.NewPCG(7, 8)), traces, 1000, 200, 0)
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
		{"what is before differs", []record{alloc(1, 1), taken(100, 9)}, []record{alloc(1, 1), taken(80, 9), alloc(99, 2), taken(100, 9)}, 2, false},
		{"overrun", []record{alloc(1, 1), taken(2, 9)}, []record{alloc(20_000, 1), taken(20_001, 9)}, 0, true},
		{"another size", []record{taken(2, 9)}, []record{alloc(1, 1), taken(2, 8)}, 0, true},
		{"no snapshot, whole", []record{alloc(1, 1), alloc(2, 2)}, []record{alloc(1, 1), alloc(2, 2), alloc(3, 3)}, 2, false},
		{"no snapshot, overrun", []record{alloc(1, 1), alloc(2, 2)}, []record{alloc(3, 3), alloc(4, 4)}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := spoolMemory
			first := &piece{spool: spool{room: &room}}
			for _, r := range c.before {
				if err := first.add(r); err != nil {
					t.Fatal(err)
				}
			}
			second := &piece{spool: spool{room: &room}, before: first.tail}
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
