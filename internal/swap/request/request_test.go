package request

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// step is a request for two operators, the first of which saves 64 bytes that the second reads.
const step = `{"device": 100, "host": 100, "graph": {"ops": [{"name": "f"}, {"name": "g"}, {"name": "b"}], "tensors": [{"bytes": 64, "uses": [2]}]}}`

func read(t *testing.T, text string) *Request {
	t.Helper()
	r, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCheck takes what can be followed, and refuses what cannot.
func TestCheck(t *testing.T) {
	r := read(t, step)
	for text, want := range map[string]string{
		`{"device": 100}`: "",
		`{"device": 100, "actions": [[0,0,1,64],[1,0,1,0],[2,0,2,64]]}`: "",
		`words`:          "read the answer",
		`{"device": -1}`: "is negative",
		`{"device": 1}`:  "more than the limit",
		`{"device": 100, "actions": [[9,0,0,0]]}`:                       "no action",
		`{"device": 100, "actions": [[0,0,4294967296,64]]}`:             "no action",
		`{"device": 100, "actions": [[0,7,1,64]]}`:                      "cannot be followed",
		`{"device": 100, "actions": [[1,0,1,0]]}`:                       "cannot be followed",
		`{"device": 100, "actions": [[0,0,1,64],[1,0,1,0]]}`:            "cannot be followed",
		`{"device": 100, "actions": [[2,0,2,64],[0,0,1,64]]}`:           "cannot be followed",
		`{"device": 100, "actions": [[0,0,1,64],[1,0,1,0],[2,0,2,32]]}`: "cannot be followed",
	} {
		err := r.Check([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	r.Host = 1
	if err := r.Check([]byte(`{"device": 100, "actions": [[0,0,1,64],[1,0,1,0],[2,0,2,64]]}`)); err == nil {
		t.Error("more than the host memory is taken")
	}
}

// FuzzCheck checks answers to requests that may both be anything.
// TestCheckSizes checks the answer for each size against that size.
func TestCheckSizes(t *testing.T) {
	size := `{"ns": [1, 1, 1], "bases": [0, 0, 0], "bytes": [%d], "recompute_ns": [0], "scratch": [0]}`
	r := read(t, strings.Replace(step, `"graph"`, `"sizes": [`+fmt.Sprintf(size, 32)+`, `+fmt.Sprintf(size, 96)+`], "graph"`, 1))
	moved := `{"device": 100, "actions": [[0,0,1,%d],[1,0,1,0],[2,0,2,%d]]}`
	small, large := fmt.Sprintf(moved, 32, 32), fmt.Sprintf(moved, 96, 96)
	for text, want := range map[string]string{
		`{"sizes": [` + small + `, ` + large + `]}`:     "",
		`{"sizes": [{"error": "no"}, {"error": "no"}]}`: "",
		`{"sizes": [` + small + `]}`:                    "1 sizes of 2",
		small:                                           "0 sizes of 2",
		`words`:                                         "read the answer",
		`{"sizes": [` + large + `, ` + small + `]}`:     "size 0: the schedule cannot be followed",
		`{"sizes": [` + small + `, {"device": 64}]}`:    "size 1: the schedule cannot be followed",
	} {
		err := r.Check([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	r.Sizes[1].Bases = nil
	if err := r.Check([]byte(`{"sizes": [` + small + `, ` + large + `]}`)); err == nil || !strings.Contains(err.Error(), "3 and 0 figures of 3 operators") {
		t.Error(err)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(step), []byte(`{"device": 100, "actions": [[0,0,1,64],[1,0,1,0],[2,0,2,64]]}`))
	f.Add([]byte(step), []byte(`{"device": 100, "actions": [[4,0,2,0]]}`))
	f.Add([]byte(strings.Replace(step, `"graph"`, `"sizes": [{"ns": [1,1,1], "bases": [0,0,0], "bytes": [9], "recompute_ns": [0]}], "graph"`, 1)),
		[]byte(`{"sizes": [{"device": 100, "actions": [[0,0,1,9],[1,0,1,0],[2,0,2,9]]}]}`))
	f.Fuzz(func(t *testing.T, asked, answered []byte) {
		r, err := Read(asked)
		if err != nil || r.Check(answered) != nil {
			return
		}
		var a Answer
		if err := json.Unmarshal(answered, &a); err != nil {
			t.Fatal(err)
		}
		for _, x := range a.Actions {
			if int(x[1]) >= len(r.Graph.Tensors) || int(x[2]) >= len(r.Graph.Ops) {
				t.Errorf("action %v of a step of %d operators and %d tensors", x, len(r.Graph.Ops), len(r.Graph.Tensors))
			}
		}
	})
}

// TestComplete takes what a complete graph has. States are numbered in the order in which their names come, and listed ascending.
func TestComplete(t *testing.T) {
	r := read(t, `{"graph": {"complete": true, "ops": [{"reads": ["b"]}, {"reads": ["a", "b"], "changes": ["c"]}],
		"tensors": [{"bytes": 1, "uses": [1], "changed": [1]}, {"bytes": 1, "made": 1, "uses": [1], "over": [0]}]}}`)
	g := r.Graph.Swap()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	o := g.Ops[1]
	if !g.Complete || !slices.Equal(g.States, []string{"b", "a", "c"}) || !slices.Equal(o.Reads, []int32{0, 1}) || !slices.Equal(o.Changes, []int32{2}) ||
		!slices.Equal(g.Tensors[0].Changed, []int32{1}) || !slices.Equal(g.Tensors[1].Over, []int32{0}) {
		t.Errorf("%+v", g)
	}
	r.Graph.Ops[0].Reads = []string{"b", "b"}
	if err := r.Graph.Swap().Validate(); err == nil {
		t.Error("a state is read twice by an operator")
	}
}
