package trace_test

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"gm/formats/column/columntest"
	"gm/formats/trace"
)

func TestRules(t *testing.T) {
	alloc := func(id int64) trace.Event { return trace.Event{Op: trace.OpAlloc, ID: id, Size: 8} }
	op := func(op trace.Op, id int64) trace.Event { return trace.Event{Op: op, ID: id} }
	for name, c := range map[string]struct {
		rows []trace.Event
		want string // nothing for a good trace
	}{
		"empty":                          {nil, ""},
		"live at the end":                {[]trace.Event{alloc(1)}, ""},
		"ids with a gap":                 {[]trace.Event{alloc(1), alloc(3), op(trace.OpMark, 0)}, ""},
		"free in one row":                {[]trace.Event{alloc(1), op(trace.OpFree, 1)}, ""},
		"free in two rows":               {[]trace.Event{alloc(1), op(trace.OpFreeRequested, 1), op(trace.OpFreeCompleted, 1)}, ""},
		"size of a free is not asked":    {[]trace.Event{alloc(1), {Op: trace.OpFree, ID: 1, Size: 7, Stream: 9}}, ""},
		"time negative":                  {[]trace.Event{{TimeNS: -1, Op: trace.OpMark}}, "row 0: time -1 ns is negative"},
		"time backwards":                 {[]trace.Event{{TimeNS: 5, Op: trace.OpMark}, {TimeNS: 4, Op: trace.OpMark}}, "row 1: time 4 ns is before that of the row above, 5"},
		"time far":                       {[]trace.Event{{TimeNS: 1<<62 + 1, Op: trace.OpMark}}, "row 0: time 4611686018427387905 ns, expected at most 4611686018427387904"},
		"op unknown":                     {[]trace.Event{{Op: 12}}, "row 0: unknown op 12"},
		"op negative":                    {[]trace.Event{{Op: -1}}, "row 0: unknown op -1"},
		"level unknown":                  {[]trace.Event{{Op: trace.OpMark, Level: 2}}, "row 0: unknown level 2"},
		"alloc of nothing":               {[]trace.Event{op(trace.OpAlloc, 1)}, "row 0: alloc of 0 bytes"},
		"size negative":                  {[]trace.Event{{Op: trace.OpOOM, Size: -1}}, "row 0: oom of -1 bytes"},
		"size too large":                 {[]trace.Event{{Op: trace.OpAlloc, ID: 1, Size: 1<<47 + 1}}, "row 0: alloc of 140737488355329 bytes"},
		"size of all":                    {slices.Repeat([]trace.Event{{Op: trace.OpSegmentMap, Size: 1 << 47}}, 1<<14+1), "row 16384: the sizes of the rows add up to more than 2305843009213693952 bytes"},
		"address beyond the last":        {[]trace.Event{{Op: trace.OpAlloc, ID: 1, Size: 2, Addr: math.MaxUint64 - 1}}, "row 0: alloc of 2 bytes at 0xfffffffffffffffe reaches beyond the last address"},
		"more free than there is":        {[]trace.Event{{Op: trace.OpOOM, Size: 2, Addr: 1 << 63}}, "row 0: oom with 9223372036854775808 bytes free"},
		"device negative":                {[]trace.Event{{Op: trace.OpMark, Device: -1}}, "row 0: device -1, expected 0 to 1023"},
		"device too high":                {[]trace.Event{{Op: trace.OpMark, Device: 1024}}, "row 0: device 1024, expected 0 to 1023"},
		"thread negative":                {[]trace.Event{{Op: trace.OpMark, Thread: -2}}, "row 0: thread -2 is negative"},
		"alloc without id":               {[]trace.Event{alloc(0)}, "row 0: alloc has id 0, expected 1 or more"},
		"alloc with a negative id":       {[]trace.Event{alloc(-3)}, "row 0: alloc has id -3, expected 1 or more"},
		"id used twice":                  {[]trace.Event{alloc(2), alloc(2)}, "row 1: alloc has id 2, expected more than the 2 of the alloc before"},
		"ids decrease":                   {[]trace.Event{alloc(2), alloc(1)}, "row 1: alloc has id 1, expected more than the 2 of the alloc before"},
		"id far beyond the rows":         {[]trace.Event{alloc(1 << 40)}, "row 0: alloc has id 1099511627776, more than a trace can have rows"},
		"id beyond the rows":             {[]trace.Event{alloc(3)}, "alloc with id 3 in a trace of 1 rows"},
		"free of an unknown id":          {[]trace.Event{op(trace.OpFree, 5)}, "row 0: free of id 5, which is not live: it was never allocated"},
		"free of an id that is left out": {[]trace.Event{alloc(1), alloc(3), op(trace.OpFree, 2)}, "row 2: free of id 2, which is not live: it was never allocated"},
		"free of a negative id":          {[]trace.Event{op(trace.OpFree, -5)}, "row 0: free of id -5, which is not live: it was never allocated"},
		"free twice":                     {[]trace.Event{alloc(1), op(trace.OpFree, 1), op(trace.OpFree, 1)}, "row 2: free of id 1, which is not live: it is freed already"},
		"free after its request":         {[]trace.Event{alloc(1), op(trace.OpFreeRequested, 1), op(trace.OpFree, 1)}, "row 2: free of id 1, which is not live: it has its free requested already"},
		"request twice":                  {[]trace.Event{alloc(1), op(trace.OpFreeRequested, 1), op(trace.OpFreeRequested, 1)}, "row 2: free_requested of id 1, which is not live: it has its free requested already"},
		"completion without request":     {[]trace.Event{alloc(1), op(trace.OpFreeCompleted, 1)}, "row 1: free_completed of id 1, whose free is not requested: it is live"},
		"completion after free":          {[]trace.Event{alloc(1), op(trace.OpFree, 1), op(trace.OpFreeCompleted, 1)}, "row 2: free_completed of id 1, whose free is not requested: it is freed already"},
		"id of a segment":                {[]trace.Event{op(trace.OpSegmentAlloc, 4)}, "row 0: segment_alloc has id 4, expected 0"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &trace.Batch{}
			for _, e := range c.rows {
				b.Append(e)
			}
			var v trace.Validator
			err := v.Check(b)
			if err == nil {
				err = v.Close()
			}
			if got := message(err); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The reader and the writer name the row within the file, and keep failing after an error.
func TestRulesByRow(t *testing.T) {
	b := &trace.Batch{}
	for id := range int64(70_000) {
		b.Append(trace.Event{Op: trace.OpAlloc, ID: id + 1, Size: 1})
	}
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	for range 2 {
		err := w.Write(b)
		for i := range b.ID {
			b.ID[i] += 70_000
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	bad := &trace.Batch{}
	bad.Append(trace.Event{Op: trace.OpFree, ID: 140_001})
	want := "write trace: row 140000: free of id 140001, which is not live: it was never allocated"
	for range 2 {
		if err := w.Write(bad); message(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := w.Close(); message(err) != want {
		t.Errorf("close: %v, want %s", err, want)
	}
}

// The reader also refuses a trace that breaks a rule. The bytes of an op's name are replaced by those of another.
func TestReaderRules(t *testing.T) {
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	if err := w.Write(good(w)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := plain(t, out.Bytes())
	for _, c := range []struct{ old, new, want string }{
		{"segment_map", "segment_mop", `trace x.parquet: row 9: unknown op "segment_mop"`},
		{"framework", "framewerk", `trace x.parquet: row 1: unknown level "framewerk"`},
		{"free_requested", "free_completed", "trace x.parquet: row 3: free_completed of id 1, whose free is not requested: it is live"},
	} {
		changed := bytes.Replace(file, []byte(c.old), []byte(c.new), 1)
		if bytes.Equal(changed, file) {
			t.Fatalf("no %s in the file", c.old)
		}
		if err := readErr(changed); message(err) != c.want {
			t.Errorf("%s: %v, want %s", c.new, err, c.want)
		}
	}
}

// plain returns the file with pages that can be changed.
func plain(tb testing.TB, file []byte) []byte {
	tb.Helper()
	out, err := columntest.Plain(file)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func readErr(file []byte) error {
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
	if err != nil {
		return err
	}
	for {
		if _, err = r.Next(); err != nil {
			break
		}
	}
	if err == io.EOF {
		return nil
	}
	if _, again := r.Next(); again != err {
		return again
	}
	return err
}

func TestNames(t *testing.T) {
	for op := trace.OpAlloc; op <= trace.OpMark; op++ {
		if got, err := trace.ParseOp(op.String()); err != nil || got != op {
			t.Errorf("%v: %v %v", op, got, err)
		}
		if op.Segment() != strings.HasPrefix(op.String(), "segment_") {
			t.Errorf("%v: segment %v", op, op.Segment())
		}
	}
	if _, err := trace.ParseOp("malloc"); message(err) != `unknown op "malloc"` {
		t.Error(err)
	}
	if got := trace.LevelDriver.String(); got != "driver" {
		t.Error(got)
	}
	if got := trace.Op(99).String(); got != "Op(99)" {
		t.Error(got)
	}
}

// TestMeta checks that metadata with which sums overflow is refused, when it is written and when it is read.
func TestMeta(t *testing.T) {
	for want, meta := range map[string]trace.Meta{
		"alignment of -1 bytes":                  {Alignment: -1},
		"alignment of 4611686018427387904 bytes": {Alignment: 1 << 62},
		"capacity of -5 bytes":                   {Capacity: -5},
	} {
		for _, amended := range []bool{false, true} {
			w := trace.NewWriter(io.Discard, trace.Meta{})
			if !amended {
				w = trace.NewWriter(io.Discard, meta)
			}
			*w.Meta() = meta
			if err := w.Close(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error %v, want %q", meta, err, want)
			}
		}
	}
}

// TestMaxLive writes a trace with more live allocations than can be read.
func TestMaxLive(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 4 Mi rows")
	}
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{})
	b := &trace.Batch{}
	for id := int64(1); id <= trace.MaxLive+2; id++ {
		if b.Append(trace.Event{Op: trace.OpAlloc, ID: id, Size: 8}); id == 7 || id == 8 {
			b.Append(trace.Event{Op: trace.OpFree, ID: id})
		}
		if b.Len() >= 1<<16 || id == trace.MaxLive+2 {
			if err := w.Write(b); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
	}
	read := func() error {
		r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), "x.parquet")
		for err == nil {
			_, err = r.Next()
		}
		return err
	}
	b.Append(trace.Event{Op: trace.OpAlloc, ID: trace.MaxLive + 3, Size: 8})
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := "trace x.parquet: row 4194308: more than 4194304 allocations are live at once, the most that can be read"
	if err := read(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
