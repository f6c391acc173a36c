package replay

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"gm/formats/trace"
)

// edit rewrites a trace: change gets each row and reports whether it is kept.
func edit(t *testing.T, r *trace.Reader, change func(row int, e *trace.Event) bool) *trace.Reader {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out, r.Meta())
	row := 0
	for {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		var kept trace.Batch
		for i := range batch.Len() {
			e := batch.Row(i)
			e.Stack, e.Tag, e.Pool = 0, w.Strings().Code(r.Strings().Text(e.Tag)), w.Strings().Code(r.Strings().Text(e.Pool))
			if change(row, &e) {
				kept.Append(e)
			}
			row++
		}
		if err := w.Write(&kept); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	edited, err := trace.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "edited")
	if err != nil {
		t.Fatal(err)
	}
	return edited
}

// TestVerifyFindsDivergences changes one row of a recording and expects the row to be named.
func TestVerifyFindsDivergences(t *testing.T) {
	const file = testdata + "/snapshots/gpt2.pickle.gz"
	first := func(op trace.Op, after int) int {
		found := -1
		edit(t, openRecording(t, file), func(row int, e *trace.Event) bool {
			if found < 0 && row >= after && e.Op == op {
				found = row
			}
			return true
		})
		return found
	}
	alloc, segment := first(trace.OpAlloc, 1000), first(trace.OpSegmentAlloc, 500)
	for name, c := range map[string]struct {
		row    int // its number after the change
		change func(row int, e *trace.Event) bool
	}{
		"nothing": {-1, func(int, *trace.Event) bool { return true }},
		"a block elsewhere": {alloc, func(row int, e *trace.Event) bool {
			if row == alloc {
				e.Addr += 512
			}
			return true
		}},
		"a segment of another size": {segment, func(row int, e *trace.Event) bool {
			if row == segment {
				e.Size += 2 << 20
			}
			return true
		}},
		"a segment too few": {segment, func(row int, _ *trace.Event) bool { return row != segment }},
		"a block of another size": {alloc, func(row int, e *trace.Event) bool {
			if row == alloc {
				e.Size += 64 << 20
			}
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			verdicts, err := Verify(edit(t, openRecording(t, file), c.change), 0)
			if err != nil {
				t.Fatal(err)
			}
			d := verdicts[0].Divergence
			switch {
			case c.row < 0 && d != nil:
				t.Errorf("diverged: %v", d)
			case c.row >= 0 && d == nil:
				t.Error("did not diverge")
			case d != nil && d.Row != int64(c.row):
				t.Errorf("diverged at row %d, want %d: %v", d.Row, c.row, d)
			}
		})
	}
}
