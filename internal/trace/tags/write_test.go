package tags

import (
	"bytes"
	"errors"
	"testing"

	"gm/formats/trace"
)

// TestWrite: a trace with its tags in it says the same of each allocation, and what the program says stays its own.
func TestWrite(t *testing.T) {
	w := newWriter(t)
	job(w, 4, true, func(o origin) []string {
		return []string{map[origin]string{forward: "forward (a.py:1)", backward: "backward (b.py:1)"}[o]}
	})
	own := w.alloc("own", 512, "mine")
	file := w.file()
	want, err := Derive(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	tagged := trace.NewWriter(&out, trace.Meta{})
	if err := errors.Join(want.Write(open(t, file), tagged), tagged.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := Derive(open(t, out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, out.Bytes())
	err = trace.Each(r, func(row int64, e *trace.Event) error {
		if e.Op != trace.OpAlloc {
			return nil
		}
		l, tag := got.Of(e.ID), r.Strings().Text(e.Tag)
		if l != want.Of(e.ID) {
			t.Errorf("row %d: %+v, want %+v", row, l, want.Of(e.ID))
		}
		if e.ID == own && (tag != "mine" || e.Derived != 0) || l.Certainty != NoTag && tag != l.Tag || l.Certainty == NoTag && tag != "" {
			t.Errorf("row %d is tagged %q, %+v", row, tag, l)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Of(own).Certainty != Recorded {
		t.Errorf("%+v", got.Of(own))
	}
}
