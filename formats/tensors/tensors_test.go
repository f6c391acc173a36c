package tensors_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"gm/formats/tensors"
)

func TestRoundTrip(t *testing.T) {
	var out bytes.Buffer
	meta := tensors.Meta{Rows: 9, Source: "test", Devices: []string{"H200", "H200"}, Capacity: 1 << 37}
	w := tensors.NewWriter(&out, meta)
	code := w.Strings().Code
	want := []tensors.Tensor{
		{ID: 1, Size: 5, Alloc: 0, Free: 3, AllocNS: 10, FreeNS: 40, Level: code("framework"), Pool: code("p"), Tag: code("activations"),
			Certainty: code("guess"), Rule: code("r"), Stack: code("main (a.py:1)")},
		{ID: 3, Size: 1 << 40, Alloc: 2, Free: 9, AllocNS: 30, FreeNS: 90, Device: 1, Stream: -7, Level: code("driver")},
	}
	b := &tensors.Batch{}
	for _, row := range want {
		b.Append(row)
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := tensors.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Meta(), meta) {
		t.Errorf("metadata %+v, want %+v", r.Meta(), meta)
	}
	texts := func(of interface{ Text(int32) string }, row tensors.Tensor) []string {
		var all []string
		for _, code := range []int32{row.Level, row.Pool, row.Tag, row.Certainty, row.Rule, row.Stack} {
			all = append(all, of.Text(code))
		}
		return all
	}
	n := 0
	err = tensors.Each(r, func(got *tensors.Tensor) error {
		g, e := *got, want[n]
		if a, b := texts(r.Strings(), g), texts(w.Strings(), e); !reflect.DeepEqual(a, b) {
			t.Errorf("row %d: %q, want %q", n, a, b)
		}
		for _, x := range []*tensors.Tensor{&g, &e} {
			x.Level, x.Pool, x.Tag, x.Certainty, x.Rule, x.Stack = 0, 0, 0, 0, 0, 0
		}
		if g != e {
			t.Errorf("row %d: %+v, want %+v", n, g, e)
		}
		n++
		return nil
	})
	if err != nil || n != len(want) {
		t.Errorf("%d rows, want %d: %v", n, len(want), err)
	}
	if b.Reset(); b.Len() != 0 {
		t.Errorf("%d rows after Reset", b.Len())
	}
}

func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*tensors.Tensor) // of the second of two good rows
		want   string
	}{
		"good":            {func(*tensors.Tensor) {}, ""},
		"never freed":     {func(x *tensors.Tensor) { x.Free = 9 }, ""},
		"id twice":        {func(x *tensors.Tensor) { x.ID = 1 }, "row 1: id 1, expected more than 1"},
		"out of order":    {func(x *tensors.Tensor) { x.Alloc = 0 }, "row 1: alloc at row 0 of the trace, expected more than 0"},
		"free at alloc":   {func(x *tensors.Tensor) { x.Free = 1 }, "row 1: free at row 1 of a trace of 9 rows, alloc at 1"},
		"free too late":   {func(x *tensors.Tensor) { x.Free = 10 }, "row 1: free at row 10 of a trace of 9 rows, alloc at 1"},
		"time backwards":  {func(x *tensors.Tensor) { x.FreeNS = 9 }, "row 1: free at 9 ns, alloc at 10"},
		"size 0":          {func(x *tensors.Tensor) { x.Size = 0 }, "row 1: size of 0 bytes"},
		"device too high": {func(x *tensors.Tensor) { x.Device = 1024 }, "row 1: device 1024, expected 0 to 1023"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &tensors.Batch{}
			for i := range int64(2) {
				row := tensors.Tensor{ID: i + 1, Size: 1, Alloc: i, Free: i + 2, AllocNS: 10 * i, FreeNS: 10*i + 20}
				if i == 1 {
					c.change(&row)
				}
				b.Append(row)
			}
			err := tensors.NewWriter(&bytes.Buffer{}, tensors.Meta{Rows: 9}).Write(b)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
