package trace_test

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"gm/formats/trace"
)

// good is a short trace that follows every rule.
func good(w *trace.Writer) *trace.Batch {
	s := w.Strings()
	stack, pool, tag := s.Code("main;step;matmul"), s.Code("graph"), s.Code("epoch 1")
	b := &trace.Batch{}
	for _, e := range []trace.Event{
		{TimeNS: 10, Op: trace.OpSegmentAlloc, Size: 2 << 20, Addr: 1 << 46, Thread: 7, Level: trace.LevelDriver},
		{TimeNS: 11, Op: trace.OpAlloc, ID: 1, Size: 512, Addr: 1 << 46, Stack: stack, Thread: 7},
		{TimeNS: 11, Op: trace.OpAlloc, ID: 2, Size: 1, Addr: 1<<46 + 512, Device: 1, Stream: 1 << 40, Pool: pool},
		{TimeNS: 12, Op: trace.OpFreeRequested, ID: 1, Size: 512, Addr: 1 << 46},
		{TimeNS: 13, Op: trace.OpMark, Tag: tag},
		{TimeNS: 15, Op: trace.OpFreeCompleted, ID: 1, Size: 512, Addr: 1 << 46},
		{TimeNS: 15, Op: trace.OpFree, ID: 2},
		{TimeNS: 16, Op: trace.OpAlloc, ID: 5, Size: 1 << 47, Addr: 1<<64 - 1 - trace.MaxSize, Stack: stack},
		{TimeNS: 17, Op: trace.OpOOM, Size: 1 << 40, Addr: 4096},
		{TimeNS: 18, Op: trace.OpSegmentMap, Size: 1},
		{TimeNS: 19, Op: trace.OpSegmentUnmap, Size: 1},
		{TimeNS: 20, Op: trace.OpSegmentFree},
		{TimeNS: 21, Op: trace.OpSnapshot},
	} {
		b.Append(e)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	meta := trace.Meta{
		Devices: []string{"H200", "H200, the \"second\""}, Capacity: 1 << 37, Host: "gpu1", PID: 42, Rank: 1, WorldSize: 4,
		Command: "python train.py", Source: "test", AllocConf: "expandable_segments:True",
	}
	var out bytes.Buffer
	w := trace.NewWriter(&out, meta)
	want := good(w)
	for i := range want.Len() { // one row at a time
		one := &trace.Batch{}
		one.Append(want.Row(i))
		if err := w.Write(one); err != nil {
			t.Fatal(err)
		}
	}
	w.Meta().Alignment = 512
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	r, err := trace.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	meta.Alignment = 512
	if !reflect.DeepEqual(r.Meta(), meta) {
		t.Errorf("metadata\n%+v, want\n%+v", r.Meta(), meta)
	}
	got, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if got.Len() != want.Len() || r.Rows() != int64(want.Len()) {
		t.Fatalf("%d rows of %d, want %d", got.Len(), r.Rows(), want.Len())
	}
	for i := range want.Len() {
		g, e := got.Row(i), want.Row(i)
		for _, code := range []struct{ got, want *int32 }{{&g.Pool, &e.Pool}, {&g.Stack, &e.Stack}, {&g.Tag, &e.Tag}} {
			if r.Strings().Text(*code.got) != w.Strings().Text(*code.want) {
				t.Errorf("row %d: text %q, want %q", i, r.Strings().Text(*code.got), w.Strings().Text(*code.want))
			}
			*code.got, *code.want = 0, 0
		}
		if g != e {
			t.Errorf("row %d: %+v, want %+v", i, g, e)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("after the last row: %v", err)
	}
}
