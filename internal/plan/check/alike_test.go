package check

import (
	"bytes"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/plan/layout"
)

// ops writes a trace: a is an alloc of 1 MiB, b one of 2 MiB, a digit frees the allocation with that number, and m is a mark.
func ops(t *testing.T, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{Source: text, Alignment: 512})
	var b trace.Batch
	id := int64(0)
	for i, op := range text {
		e := trace.Event{TimeNS: int64(i)}
		switch op {
		case 'a', 'b':
			id++
			e.ID, e.Size = id, int64(op-'a'+1)<<20
		case 'm':
			e.Op, e.Tag = trace.OpMark, w.Strings().Code("step")
		default:
			e.Op, e.ID = trace.OpFree, int64(op-'0')
		}
		b.Append(e)
	}
	if err := w.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestAlike(t *testing.T) {
	file := ops(t, "aa12bm3")
	for other, want := range map[string]string{
		"aa12bm3":  "",
		"maa12b3m": "", // the same in other rows
		"aa21b3":   "", // nothing lives longer
		"a1a2b":    "", // less lives at a time
		"aab123":   "overlaps tensor",
		"aa1b23":   "overlaps tensor",
		"aa12a3":   "a tensor of 2097152 bytes, device 0, pool \"\": in the trace 1048576 bytes",
		"aa12b3a":  "of 3 tensors, the trace has 4",
		"aa12":     "of 3 tensors, the trace has 2",
	} {
		_, err := Alike(writePlan(t, file, layout.Options{}, func(*layout.Plan) {}), openTrace(t, ops(t, other)))
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", other, err, want)
		}
	}
	plan := writePlan(t, file, layout.Options{}, func(p *layout.Plan) { p.Meta.First = 1 })
	if _, err := Alike(plan, openTrace(t, file)); err == nil || !strings.Contains(err.Error(), "of a part of a trace") {
		t.Error(err)
	}
}
