package exporter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/importer"
)

// TestSpans checks where and when what a profile says is shown: within the time of the trace, kernels in the process of their GPU.
func TestSpans(t *testing.T) {
	span := func(category string, process, thread int, us, length float64) string {
		return fmt.Sprintf(`{"ph": "X", "cat": %q, "name": "n", "pid": %d, "tid": %d, "ts": %f, "dur": %f, "args": {"bytes": 7}}`, category, process, thread, us, length)
	}
	for name, c := range map[string]struct {
		events []string
		want   string // process, thread, microseconds and length of each
		warned bool
	}{
		"a kernel and an operator": {[]string{span("kernel", 1, 7, 12, 2), span("cpu_op", 1, 7, 11, 3.5)}, "2/8 2.000+2.000 4194305/7 1.000+3.500", false},
		"cut at both ends":         {[]string{span("cpu_op", 3, 3, 5, 100)}, "4194307/3 0.000+10.000", false},
		"before and after":         {[]string{span("cpu_op", 3, 3, 5, 4), span("cpu_op", 3, 3, 21, 4)}, "", true},
		"of no process":            {[]string{`{"ph": "X", "cat": "Trace", "name": "n", "pid": "Spans", "tid": "x", "ts": 12, "dur": 1}`, span("cpu_op", 3, 3, 20, 0)}, "4194307/3 10.000+0.000", false},
		"no duration":              {[]string{`{"ph": "X", "cat": "cpu_op", "name": "n", "pid": 1, "tid": 1, "ts": 12}`}, "4194305/1 2.000+0.000", false},
	} {
		t.Run(name, func(t *testing.T) {
			x := made(t, trace.Meta{}, nil, []trace.Event{{TimeNS: 1_010_000, Op: trace.OpAlloc, ID: 1, Size: 10}, {TimeNS: 1_020_000, Op: trace.OpFree, ID: 1}})
			in, err := importer.Open(strings.NewReader(`{"baseTimeNanoseconds": 1000000, "traceEvents": [`+strings.Join(c.events, ",")+`]}`), "p")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			var warnings []string
			if err := Export(x.open, in, Perfetto, &out, func(s string) { warnings = append(warnings, s) }); err != nil {
				t.Fatal(err)
			}
			var file struct {
				Events []struct {
					Phase    string      `json:"ph"`
					Process  int64       `json:"pid"`
					Thread   int64       `json:"tid"`
					Time     json.Number `json:"ts"`
					Duration json.Number `json:"dur"`
				} `json:"traceEvents"`
			}
			if err := json.Unmarshal(out.Bytes(), &file); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range file.Events {
				if e.Phase == "X" {
					got = append(got, fmt.Sprintf("%d/%d %s+%s", e.Process, e.Thread, e.Time, e.Duration))
				}
			}
			if text := strings.Join(got, " "); text != c.want || len(warnings) > 0 != c.warned {
				t.Errorf("%s, warnings %q, want %s", text, warnings, c.want)
			}
		})
	}
	x := made(t, trace.Meta{}, nil, nil)
	in, err := importer.Open(strings.NewReader("time_ns,op,id,size\n"), "p")
	if err != nil {
		t.Fatal(err)
	}
	if err := Export(x.open, in, Perfetto, &bytes.Buffer{}, func(string) {}); err == nil || err.Error() != "p: no profile of torch.profiler" {
		t.Errorf("a CSV: %v", err)
	}
}
