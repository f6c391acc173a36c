package plan

import (
	"bytes"
	"errors"
	"testing"

	"gm/formats/column"
)

// TestOlderFile reads a plan of version 1.2, which has no column tag.
func TestOlderFile(t *testing.T) {
	older := table()
	all := older.Fields
	older.Fields = func(b *Batch) []column.Field { return all(b)[:11] }
	var out bytes.Buffer
	w := older.NewWriter(&out, Meta{Peak: 512, Alignment: 512, Rows: 1})
	var b Batch
	b.Append(Tensor{ID: 1, Size: 5, Free: 1})
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
	if p := got.Row(0); p.Size != 5 || r.Strings().Text(p.Tag) != "" {
		t.Errorf("%+v", p)
	}
}
