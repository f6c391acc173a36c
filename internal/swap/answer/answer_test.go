package answer

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gm/internal/atomicfile"
	"gm/internal/swap"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/request"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/simulate"
	"gm/internal/swap/store"
)

// chain is a request for layers whose outputs, of 64 MiB, the backward pass reads in the opposite order, in 10 ms each.
func chain(layers int) *request.Request {
	r := &request.Request{Device: 1 << 40, Host: 1 << 40, Policy: "auto"}
	for i := range 2 * layers {
		op := request.Op{Name: "layer", Layer: int32(min(i, 2*layers-1-i)), NS: 10e6, Base: 1 << 20}
		if i >= layers {
			op.Phase = swap.Backward
		}
		r.Graph.Ops = append(r.Graph.Ops, op)
	}
	for i := range int32(layers) {
		r.Graph.Tensors = append(r.Graph.Tensors, request.Tensor{Bytes: 64 << 20, Made: i, Uses: []int32{int32(2*layers-1) - i}, Layer: i})
	}
	return r
}

func ask(t *testing.T, r *request.Request) *request.Answer {
	t.Helper()
	var a request.Answer
	if err := json.Unmarshal(answered(t, r), &a); err != nil {
		t.Fatal(err)
	}
	return &a
}

// answered returns the answer to a request as JSON.
func answered(t *testing.T, r *request.Request) []byte {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	made, err := Make(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(made); err != nil {
		t.Errorf("%s: %v", made, err)
	}
	return made
}

func TestMake(t *testing.T) {
	r := chain(16)
	if a := ask(t, r); len(a.Actions) > 0 || a.Peak != a.PlainPeak || a.StepNS != 320e6 {
		t.Errorf("with all memory: %+v", a)
	}
	r.Device = 8 << 26
	a := ask(t, r)
	if a.Device != r.Device || a.Peak > r.Device || a.PlainPeak != 16<<26+1<<20 || len(a.Actions) == 0 {
		t.Errorf("with half of it: %+v", a)
	}
	actions := make([]swap.Action, len(a.Actions))
	for i, x := range a.Actions {
		actions[i] = swap.Action{Kind: swap.Kind(x[0]), Tensor: int32(x[1]), At: int32(x[2]), Bytes: x[3]}
	}
	result, err := simulate.Run(r.Graph.Swap(), actions, link.Default(), nil)
	if err != nil || result.Peak != a.Peak || int64(result.Step) != a.StepNS {
		t.Errorf("the answer foresees %+v, its actions come to %+v, %v", a, result, err)
	}
}

// TestSpare has a step that was recorded on an H200 done in 70 % of its memory: the fastest schedule would copy all the time.
func TestSpare(t *testing.T) {
	g, err := store.ReadGraph("../../../testdata/steps/llama-32k.parquet")
	if err != nil {
		t.Fatal(err)
	}
	auto, err := policy.Lookup("auto")
	if err != nil {
		t.Fatal(err)
	}
	r := &request.Request{Device: 40950612684, Host: 100 << 30, Policy: "auto"}
	made, unfit, err := choose(r, g.Graph)
	if err != nil || unfit != nil {
		t.Fatal(err, unfit)
	}
	whole, err := scheduling.Make(g.Graph, auto, scheduling.Limits{Device: r.Device, Host: r.Host, Link: link.Default()})
	if err != nil {
		t.Fatal(err)
	}
	if made.Moved.Out >= whole.Moved.Out || made.Moved.Step < whole.Moved.Step {
		t.Errorf("with some of the link left alone %d bytes are copied in a step of %v, with none %d in %v",
			made.Moved.Out, made.Moved.Step, whole.Moved.Out, whole.Moved.Step)
	}
}

// TestShort asks for less memory than the step can be done in.
func TestShort(t *testing.T) {
	r := chain(8)
	r.Device = 1 << 20
	if a := ask(t, r); a.Device <= r.Device || a.Peak > a.Device || a.Peak > 3<<26 {
		t.Errorf("%+v", a)
	}
}

func TestFiles(t *testing.T) {
	r := chain(8)
	dir := t.TempDir()
	r.GPUs = 2
	r.Record, r.Device = filepath.Join(dir, "g.parquet"), 4<<26
	a := ask(t, r)
	g, err := store.ReadGraph(r.Record)
	if err != nil || len(g.Ops) != 16 || len(g.Tensors) != 8 {
		t.Fatalf("%+v, %v", g, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}

	made, unfit, err := choose(r, g.Graph)
	if err != nil || unfit != nil || len(made.Actions) != len(a.Actions) || made.Meta.GPUs != 2 {
		t.Fatalf("%+v, %v, %v", made, unfit, err)
	}
	r.Schedule = filepath.Join(dir, "s.parquet")
	write := func(w io.Writer) error { return store.WriteSchedule(w, made.Schedule, g) }
	if err := atomicfile.Write(r.Schedule, write); err != nil {
		t.Fatal(err)
	}
	r.Policy = "all"
	if b := ask(t, r); !reflect.DeepEqual(a, b) {
		t.Errorf("the schedule of the file is foreseen to come to\n%+v\nand was\n%+v", b, a)
	}
	for _, spoil := range []struct {
		want string
		by   func(*request.Request)
	}{
		{"is for a step of 16 operators and 8 tensors, this one has 18 and 9", func(r *request.Request) { r.Graph = chain(9).Graph }},
		{"is not right for this step: ", func(r *request.Request) { r.Graph.Tensors[3].Uses = []int32{9, 12} }},
		{"more than the limit are in use on the device", func(r *request.Request) { r.Device /= 2 }},
		{"nosuch", func(r *request.Request) { r.Schedule = "nosuch" }},
	} {
		other := *r
		other.Graph = chain(8).Graph
		spoil.by(&other)
		if b := ask(t, &other); !strings.Contains(b.Unfit, spoil.want) || b.Policy != "all" {
			t.Errorf("%+v, want %s", b, spoil.want)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "read the request",
		`{"policy": "nosuch"}`: "unknown policy",
		`{"graph": {"ops": [{"ns": -1}]}, "policy": "auto"}`:                                                         "operator 0: duration",
		`{"policy": "auto", "link": "/nosuch"}`:                                                                      "/nosuch",
		`{"policy": "auto", "record": "/nosuch/g.parquet"}`:                                                          "write /nosuch/g.parquet",
		`{"graph": {"tensors": [{"bytes": 1, "uses": [0]}]}, "policy": "auto"}`:                                      "tensor 0",
		`{"graph": {"ops": [{}], "tensors": [{"bytes": 1, "uses": [0], "role": 3}]}, "record": "/nosuch/g.parquet"}`: "there is no role 3",
	} {
		if _, err := Make([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", text, err, want)
		}
	}
}

// FuzzMake asks for schedules of steps that were never recorded: what is answered keeps to what was asked for.
func FuzzMake(f *testing.F) {
	for _, layers := range []int{1, 3} {
		r := chain(layers)
		r.Device = 2 << 26
		text, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var r request.Request
		if json.Unmarshal(text, &r) != nil || len(r.Graph.Ops) > 50 || len(r.Graph.Tensors) > 50 || r.Record+r.Schedule+r.Link != "" {
			return
		}
		made, err := Make(text)
		if err != nil {
			return
		}
		if err := r.Check(made); err != nil {
			t.Errorf("%s: %v", made, err)
		}
		var a request.Answer
		if err := json.Unmarshal(made, &a); err != nil {
			t.Fatal(err)
		}
		if a.StepNS < 0 || a.Peak < 0 || a.Peak > a.Device || a.HostPeak < 0 || a.HostPeak > r.Host || a.Device < r.Device {
			t.Errorf("answer %+v to %d bytes of device memory and %d of host memory", a, r.Device, r.Host)
		}
	})
}

// TestSizes answers for several sizes at once what it does for each of them alone, in their order, and says why there is no schedule for one.
func TestSizes(t *testing.T) {
	r := chain(16)
	r.Device, r.Policy = 500<<20, "prompt"
	var want []string
	for _, part := range []int64{4, 6, 8, -1} {
		one, size := chain(16), request.Size{}
		one.Device, one.Policy = r.Device, r.Policy
		for i := range one.Graph.Ops {
			one.Graph.Ops[i].NS = one.Graph.Ops[i].NS * part / 8
			size.NS, size.Bases = append(size.NS, one.Graph.Ops[i].NS), append(size.Bases, one.Graph.Ops[i].Base)
		}
		for i := range one.Graph.Tensors {
			one.Graph.Tensors[i].Bytes = one.Graph.Tensors[i].Bytes * part / 8
			one.Graph.Tensors[i].Scratch = part << 10
			size.Scratch = append(size.Scratch, one.Graph.Tensors[i].Scratch)
			size.Bytes, size.RecomputeNS = append(size.Bytes, one.Graph.Tensors[i].Bytes), append(size.RecomputeNS, 0)
		}
		r.Sizes = append(r.Sizes, size)
		if text, err := json.Marshal(one); err != nil {
			t.Fatal(err)
		} else if made, err := Make(text); err == nil {
			want = append(want, string(made))
		} else {
			want = append(want, err.Error())
		}
	}
	var got request.Answers
	if err := json.Unmarshal(answered(t, r), &got); err != nil || len(got.Sizes) != len(want) {
		t.Fatal(err, len(got.Sizes))
	}
	for i, s := range got.Sizes {
		if alone, err := json.Marshal(s.Answer); err != nil || s.Error == "" && string(alone) != want[i] || s.Error != "" && s.Error != want[i] {
			t.Errorf("size %d: %s, %q, %v; alone %s", i, alone, s.Error, err, want[i])
		}
	}
	if got.Sizes[3].Error == "" || len(got.Sizes[2].Actions) == 0 {
		t.Errorf("%+v", got.Sizes)
	}
}
