package trace

import (
	"bytes"
	"errors"
	"testing"

	"gm/formats/column"
)

func TestDerived(t *testing.T) {
	for _, d := range []Derived{
		{"activations", "inferred", "made in the forward pass, outlives it"}, {"a (b)", "guess", "x: (y): z"}, {"t", "", ""},
	} {
		if got, ok := ParseDerived(d.String()); !ok || got != d {
			t.Errorf("%q is %+v, %v", d, got, ok)
		}
	}
	for _, text := range []string{"", "activations", "(guess): x", "a (guess)", "a: b"} {
		if got, ok := ParseDerived(text); ok {
			t.Errorf("%q is %+v", text, got)
		}
	}
	if text := (Derived{Certainty: "guess"}).String(); text != "" {
		t.Errorf("no tag is %q", text)
	}
}

// TestOlderFile reads a trace of version 1.2, which has no column derived.
func TestOlderFile(t *testing.T) {
	older := table()
	all := older.Fields
	older.Fields = func(b *Batch) []column.Field { return all(b)[:12] }
	var out bytes.Buffer
	w := older.NewWriter(&out, Meta{})
	var b Batch
	b.Append(Event{Op: OpAlloc, ID: 1, Size: 5, Tag: w.Strings().Code("tag")})
	if err := errors.Join(w.Write(&b), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "older")
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if e := got.Row(0); r.Strings().Text(e.Tag) != "tag" || r.Strings().Text(e.Derived) != "" {
		t.Errorf("%+v", e)
	}
}
