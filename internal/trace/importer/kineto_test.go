package importer

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gm/formats/trace"
)

const recordedProfile = "../../../testdata/profiles/linear.json.gz"

// TestProfile compares a recorded profile with what its own totals say: after each row as many bytes live as the profile counted.
func TestProfile(t *testing.T) {
	f, err := os.Open(recordedProfile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := importFrom(t, "profile", f)
	if err != nil {
		t.Fatal(err)
	}
	totals := recordedTotals(t)
	live, n, begun := int64(0), 0, false
	sizes := map[int64]int64{}
	for _, e := range got.events {
		switch e.Op {
		case trace.OpAlloc:
			sizes[e.ID] = e.Size
			live += e.Size
		case trace.OpFree:
			live -= sizes[e.ID]
		default:
			continue
		}
		if begun = begun || live == totals[0]; !begun || e.ID == 1 {
			continue // older than the profile
		}
		if n >= len(totals) || live != totals[n] {
			t.Fatalf("%d bytes live after change %d, the profile has %v", live, n, totals[min(n, len(totals)-1)])
		}
		n++
	}
	if n != len(totals) {
		t.Errorf("%d changes, the profile has %d", n, len(totals))
	}
	if m := got.meta; !slices.Equal(m.Devices, []string{"NVIDIA H200"}) || m.Capacity != 150109880320 || m.Source != "pytorch profile profile" {
		t.Errorf("metadata: %+v", m)
	}
	if len(got.warnings) > 0 {
		t.Errorf("warnings: %q", got.warnings)
	}
	for _, want := range []string{"tag=step 1 START", "tag=Optimizer.step#Adam.step END", ";AddmmBackward0;aten::mm", " oom 0 35184372088832 "} {
		if !slices.ContainsFunc(got.rows, func(row string) bool { return strings.Contains(row, want) }) {
			t.Errorf("no row with %q", want)
		}
	}
}

// recordedTotals returns the bytes on the GPU after each of the recorded profile's changes, in order of time.
func recordedTotals(t *testing.T) []int64 {
	f, err := os.Open(recordedProfile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var profile struct {
		Events []struct {
			Name string         `json:"name"`
			Time float64        `json:"ts"`
			Args map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	if err := json.NewDecoder(unpacked).Decode(&profile); err != nil {
		t.Fatal(err)
	}
	type total struct {
		time  float64
		bytes int64
	}
	var all []total
	for _, e := range profile.Events {
		if e.Name == "[memory]" && e.Args["Device Type"].(float64) == 1 {
			all = append(all, total{e.Time, int64(e.Args["Total Allocated"].(float64))})
		}
	}
	slices.SortFunc(all, func(a, b total) int {
		if a.time < b.time {
			return -1
		}
		return 1
	})
	var bytes []int64
	for _, one := range all {
		bytes = append(bytes, one.bytes)
	}
	return bytes
}

// TestStackOfThread compares the stacks of random nested spans with all spans that enclose a time.
func TestStackOfThread(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		k := &kineto{}
		thread := k.thread(&kinetoEvent{Thread: json.RawMessage("1")})
		var nest func(begin, end int64, depth int)
		nest = func(begin, end int64, depth int) {
			for at := begin; depth < 5 && at < end; {
				from := at + random.Int64N(end-at)
				to := from + 1 + random.Int64N(end-from)
				thread.spans = append(thread.spans, kinetoSpan{begin: from, end: to, name: int32(len(thread.spans))})
				nest(from, to, depth+1)
				at = to
			}
		}
		nest(0, 1000, 0)
		all := slices.Clone(thread.spans) // each is after what encloses it
		random.Shuffle(len(thread.spans), func(i, j int) {
			if a, b := thread.spans[i], thread.spans[j]; a.begin != b.begin || a.end != b.end {
				thread.spans[i], thread.spans[j] = b, a
			}
		})
		k.sortSpans()
		for ns := int64(0); ns < 1000; ns += 1 + random.Int64N(30) {
			var want, got []string
			for _, s := range all {
				if s.begin <= ns && ns < s.end {
					want = append(want, spanText(s))
				}
			}
			for key := thread.at(ns, nil, nil); len(key) > 0; key = key[4:] {
				name := int32(binary.LittleEndian.Uint32(key))
				got = append(got, spanText(all[name]))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("at %d: %q, want %q", ns, got, want)
			}
		}
	}
}

// TestFlows: what the backward pass allocates has the frames of the operator of the forward pass around it, also where several arrows begin
// in one operator, and arrows without a beginning change nothing.
func TestFlows(t *testing.T) {
	const profile = `{"traceEvents": [
		{"ph": "X", "cat": "python_function", "name": "train.py(9): forward", "pid": 1, "tid": 1, "ts": 1, "dur": 10},
		{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 1, "tid": 1, "ts": 2, "dur": 5},
		{"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 7, "pid": 1, "tid": 1, "ts": 2},
		{"ph": "X", "cat": "python_function", "name": "train.py(20): backward", "pid": 1, "tid": 1, "ts": 20, "dur": 40},
		{"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: AddmmBackward0", "pid": 1, "tid": 2, "ts": 30, "dur": 10},
		{"ph": "X", "cat": "cpu_op", "name": "AddmmBackward0", "pid": 1, "tid": 2, "ts": 31, "dur": 5},
		{"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": 7, "bp": "e", "pid": 1, "tid": 2, "ts": 31},
		{"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: TBackward0", "pid": 1, "tid": 2, "ts": 41, "dur": 3},
		{"ph": "X", "cat": "cpu_op", "name": "TBackward0", "pid": 1, "tid": 2, "ts": 42, "dur": 2},
		{"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": "8", "bp": "e", "pid": 1, "tid": 2, "ts": 42},
		{"ph": "i", "name": "[memory]", "pid": 1, "tid": 2, "ts": 32, "args": {"Bytes": 512, "Addr": 1024, "Device Type": 1, "Device Id": 0}},
		{"ph": "i", "name": "[memory]", "pid": 1, "tid": 2, "ts": 38, "args": {"Bytes": 512, "Addr": 2048, "Device Type": 1, "Device Id": 0}},
		{"ph": "i", "name": "[memory]", "pid": 1, "tid": 2, "ts": 43, "args": {"Bytes": 512, "Addr": 4096, "Device Type": 1, "Device Id": 0}}
	]}`
	got, err := importFrom(t, "profile", strings.NewReader(profile))
	if err != nil {
		t.Fatal(err)
	}
	const linear = "forward (train.py:9);aten::linear;autograd::engine::evaluate_function: AddmmBackward0"
	for i, want := range []string{linear + ";AddmmBackward0", linear, "autograd::engine::evaluate_function: TBackward0;TBackward0"} {
		if row := got.rows[i]; !strings.Contains(row+" ", "stack="+want+" ") {
			t.Errorf("row %d: %s, want the stack %s", i, row, want)
		}
	}
}

// spanText tells spans apart by their times alone: of equal ones either may be the outer.
func spanText(s kinetoSpan) string { return string(rune('a'+s.begin)) + string(rune('a'+s.end)) }

func TestNanoseconds(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "5": 5000, "4605496357454.944": 4605496357454944, "0.1": 100, "-0.5": -500, "-2.25": -2250, "1.23456": 1234, "1e3": 1000000, "2.": 2000,
	} {
		if got, err := nanoseconds(json.Number(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"1e300", "-1e300", "4611686018427388", "9223372036854775808", "-9223372036854775808", "1.x", "NaN", "0x5"} {
		if got, err := nanoseconds(json.Number(text)); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestFrameOf(t *testing.T) {
	for name, want := range map[string]string{
		"aten::mm":                      "aten::mm",
		"train.py(12): step":            "step (train.py:12)",
		"<built-in method run of X; y>": "<built-in method run of X, y>",
		"nn.Module: Linear_0":           "nn.Module: Linear_0",
	} {
		if got := frameOf(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
