package changes

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gm/formats/trace"
	"gm/internal/trace/overview"
)

// file is a trace in memory.
type file []byte

func (f file) open(t testing.TB) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(f), int64(len(f)), "test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// read reads the sections of a trace that spans gives, or all of it for nil.
func (f file) read(t testing.TB, spans map[int32]overview.Span) []*Contents {
	t.Helper()
	o, err := overview.Read(f.open(t))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Read(f.open(t), o, spans)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// made writes a trace of rows, in which the codes of texts are indexes of texts.
func made(t testing.TB, texts []string, rows []trace.Event) file {
	t.Helper()
	var b bytes.Buffer
	w := trace.NewWriter(&b, trace.Meta{})
	for _, text := range texts {
		w.Strings().Code(text)
	}
	var batch trace.Batch
	for _, e := range rows {
		batch.Append(e)
	}
	if err := errors.Join(w.Write(&batch), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func alloc(id, size int64, stack int32) trace.Event {
	return trace.Event{Op: trace.OpAlloc, ID: id, Size: size, Stack: stack}
}

func free(id int64) trace.Event { return trace.Event{Op: trace.OpFree, ID: id} }

func early(e trace.Event, tag int32) trace.Event {
	e.Tag = tag
	return e
}

func TestCompare(t *testing.T) {
	textsA := []string{"", "main (a.py:1);f (b.py:7)", "main (a.py:2);g (b.py:9)", "main (a.py:3);h (b.py:5)", "preexisting"}
	// The program has changed, and so have its lines. It no longer frees the blocks of g, and allocates none in h.
	textsB := []string{"", "main (a.py:11);f (b.py:17)", "main (a.py:12);g (b.py:19)", "main (a.py:13);new (b.py:5)", "preexisting"}
	a := made(t, textsA, []trace.Event{
		early(alloc(1, 4096, 0), 4), alloc(2, 100, 1), alloc(3, 5000, 2), alloc(4, 70, 3), free(3), alloc(5, 9, 0), free(4),
	})
	b := made(t, textsB, []trace.Event{
		early(alloc(1, 8192, 0), 4), alloc(2, 100, 1), alloc(3, 100, 1), alloc(4, 5000, 2), alloc(5, 30, 3), free(2), alloc(6, 9, 0),
	})
	got := Compare(a.read(t, nil)[0], b.read(t, nil)[0], false)
	want := &Device{
		Level: "framework", HasStacks: true,
		Peak: Comparison{
			Pair: Pair{9266, 13422},
			Groups: []Change{
				{Before, Grew, 4096, 8192, 1, 1},
				{"main (a.py:11);f (b.py:17)", Grew, 100, 200, 1, 2},
				{"main (a.py:3);h (b.py:5)", Gone, 70, 0, 1, 0},
				{"main (a.py:13);new (b.py:5)", New, 0, 30, 0, 1},
			},
			Classes: []Change{
				{"over 4 KiB, up to 32 KiB", Grew, 5000, 13192, 1, 2},
				{"up to 4 KiB", Shrank, 4266, 230, 3, 3},
			},
		},
		End: Comparison{
			Pair: Pair{4205, 13331},
			Groups: []Change{
				{"main (a.py:12);g (b.py:19)", Kept, 0, 5000, 0, 1},
				{Before, Grew, 4096, 8192, 1, 1},
				{"main (a.py:13);new (b.py:5)", New, 0, 30, 0, 1},
			},
			Classes: []Change{
				{"over 4 KiB, up to 32 KiB", Kept, 0, 13192, 0, 2},
				{"up to 4 KiB", Shrank, 4205, 139, 3, 3},
			},
		},
		Made: Comparison{
			Pair: Pair{5179, 5239},
			Groups: []Change{
				{"main (a.py:11);f (b.py:17)", Grew, 100, 200, 1, 2},
				{"main (a.py:3);h (b.py:5)", Gone, 70, 0, 1, 0},
				{"main (a.py:13);new (b.py:5)", New, 0, 30, 0, 1},
			},
			Classes: []Change{{"up to 4 KiB", Grew, 179, 239, 3, 4}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStackless compares by size and stream, whose handles differ from run to run.
func TestStackless(t *testing.T) {
	rows := func(handle int64, n int64) []trace.Event {
		all := []trace.Event{alloc(1, 512, 0)}
		for i := range n {
			e := alloc(2+i, 1024, 0)
			e.Stream = handle
			all = append(all, e)
		}
		return all
	}
	a, b := made(t, nil, rows(0x7f00, 1)), made(t, nil, rows(0x9900, 3))
	got := Compare(a.read(t, nil)[0], b.read(t, nil)[0], false)
	if diff := cmp.Diff([]Change{{"1 KiB on stream 1", Grew, 1024, 3072, 1, 3}}, got.Peak.Groups); diff != "" || got.HasStacks {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDriver compares a device without rows of a framework.
func TestDriver(t *testing.T) {
	texts := []string{"", "memory by=nccl", "pool by=rapids", "pinned"}
	given := func(op trace.Op, id, size int64, tag int32) trace.Event {
		return trace.Event{Op: op, ID: id, Size: size, Tag: tag, Level: trace.LevelDriver}
	}
	a := made(t, texts, []trace.Event{given(trace.OpAlloc, 1, 100, 1), given(trace.OpAlloc, 2, 1000, 3), given(trace.OpSegmentAlloc, 0, 50, 2)})
	b := made(t, texts, []trace.Event{given(trace.OpAlloc, 1, 300, 1), given(trace.OpAlloc, 2, 20, 2), given(trace.OpSegmentAlloc, 0, 50, 2), given(trace.OpSegmentFree, 0, 50, 2)})
	got := Compare(a.read(t, nil)[0], b.read(t, nil)[0], false)
	want := Comparison{
		Pair:    Pair{150, 300},
		Groups:  []Change{{"memory by=nccl", Grew, 100, 300, 1, 1}, {"pool by=rapids", Gone, 50, 0, 0, 0}},
		Classes: []Change{{"up to 4 KiB", Grew, 100, 300, 1, 1}, {"in pools", Gone, 50, 0, 0, 0}},
	}
	if diff := cmp.Diff(want, got.End); diff != "" || got.Level != "driver" || got.Peak.B != 350 {
		t.Errorf("peak %+v, end (-want +got):\n%s", got.Peak.Pair, diff)
	}
}

// TestMissing compares with a trace that has no rows of a device.
func TestMissing(t *testing.T) {
	c := made(t, nil, []trace.Event{alloc(1, 512, 0)}).read(t, nil)[0]
	if d := Compare(nil, c, false); d.Peak.A != 0 || d.Peak.B != 512 || d.Peak.Groups[0].What != New {
		t.Errorf("%+v", d)
	}
	if d := Compare(c, nil, false); d.Peak.A != 512 || d.Peak.B != 0 || d.Peak.Groups[0].What != Gone {
		t.Errorf("%+v", d)
	}
}

// randomRows are the rows of a program that allocates and frees at random.
func randomRows(seed uint64, n int) []trace.Event {
	rng := rand.New(rand.NewPCG(seed, 2))
	var rows []trace.Event
	var live []int64
	id := int64(0)
	for range n {
		if len(live) > 0 && rng.IntN(5) < 2 {
			i := rng.IntN(len(live))
			rows = append(rows, free(live[i]))
			live = append(live[:i], live[i+1:]...)
			continue
		}
		id++
		e := alloc(id, 1+rng.Int64N(1<<(1+rng.IntN(20))), int32(rng.IntN(4)))
		e.Stream = rng.Int64N(3)
		if id < 5 {
			e.Tag = 4
		}
		rows = append(rows, e)
		live = append(live, id)
	}
	return rows
}

// TestProperties: a trace does not differ from itself, what the groups change by is what the whole changes by, and peaks and ends
// are those of a plain count over a section.
func TestProperties(t *testing.T) {
	texts := []string{"", "main (a.py:1);f (b.py:7)", "main (a.py:2);f (b.py:9)", "main (a.py:3);h (b.py:5)", "preexisting"}
	moved := []string{"", "main (a.py:1);f (b.py:8)", "main (a.py:2);f (b.py:11)", "main (a.py:4);h (b.py:5)", "preexisting"}
	for seed := range uint64(200) {
		rows := randomRows(seed, 150)
		a, b := made(t, texts, rows), made(t, moved, randomRows(seed+1000, 150))
		if d := Compare(a.read(t, nil)[0], a.read(t, nil)[0], seed%2 == 0); changed(d) != 0 {
			t.Fatalf("seed %d: a trace differs from itself: %+v", seed, d)
		}
		if d := Compare(a.read(t, nil)[0], made(t, moved, rows).read(t, nil)[0], false); changed(d) != 0 {
			t.Fatalf("seed %d: a trace differs from itself in other lines: %+v", seed, d)
		}
		checkSums(t, Compare(a.read(t, nil)[0], b.read(t, nil)[0], false))
		span := overview.Span{First: int64(seed % 60), End: 60 + int64(seed%91)}
		part := a.read(t, map[int32]overview.Span{0: span})[0]
		checkSums(t, Compare(a.read(t, nil)[0], part, true))
		if peak, end := count(rows, span); part.Peak != peak || part.End != end {
			t.Fatalf("seed %d: peak %d and end %d of %v, expected %d and %d", seed, part.Peak, part.End, span, peak, end)
		}
	}
}

func changed(d *Device) int {
	n := 0
	for _, c := range []*Comparison{&d.Peak, &d.End, &d.Made} {
		n += len(c.Groups) + len(c.Classes)
	}
	return n
}

func checkSums(t *testing.T, d *Device) {
	t.Helper()
	for _, c := range []*Comparison{&d.Peak, &d.End, &d.Made} {
		for _, all := range [][]Change{c.Groups, c.Classes} {
			sum := int64(0)
			for _, change := range all {
				sum += change.B - change.A
			}
			if sum != c.B-c.A {
				t.Fatalf("the groups change by %d, the whole by %d: %+v", sum, c.B-c.A, all)
			}
		}
	}
}

// count returns the peak of the live bytes in a section, and those at its end.
func count(rows []trace.Event, span overview.Span) (peak, end int64) {
	sizes := map[int64]int64{}
	live := int64(0)
	for i, e := range rows {
		if int64(i) == span.First {
			peak = live
		}
		if int64(i) == span.End {
			return peak, live
		}
		if e.Op == trace.OpAlloc {
			sizes[e.ID] = e.Size
			live += e.Size
		} else {
			live -= sizes[e.ID]
		}
		if int64(i) >= span.First {
			peak = max(peak, live)
		}
	}
	return peak, live
}
