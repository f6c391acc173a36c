package partition_test

import (
	"strings"
	"testing"

	"gm/internal/swap/partition"
)

// chain is two layers, of which the second can run once more, and a backward pass that reads both.
const chain = `{"forward": 2, "limit": 10, "saved": [0, 1], "values": [{"bytes": 3}, {"bytes": 5}, {"bytes": 1, "kept": true}],
	"ops": [{"ns": 1, "makes": [0]}, {"ns": 7, "reads": [0], "makes": [1], "able": true}, {"ns": 2, "reads": [1, 0], "makes": [2]}]}`

func TestRead(t *testing.T) {
	for change, want := range map[string]string{
		"":                          "",
		`"ops"|"opps"`:              "0 operators",
		`"forward": 2|"forward": 4`: "4 of them of the forward pass",
		`"bytes": 3|"bytes": -3`:    "value 0 has -3 bytes",
		`"bytes": 3|"bytes": 2000000000000000000`: "value 0 has 2000000000000000000 bytes",
		`"ns": 7|"ns": -7`:                        "operator 1 takes -7 ns",
		`"reads": [0]|"reads": [1]`:               "operator 1 reads value 1, which is not there",
		`"reads": [0]|"reads": [-1]`:              "operator 1 reads value -1",
		`"forward": 2|"forward": 3`:               "",
		`"forward": 2|"forward": -1`:              "-1 of them of the forward pass",
		`"reads": [1, 0]|"reads": [3, 0]`:         "operator 2 reads value 3, which is not there",
		`"makes": [2]|"makes": [3]`:               "operator 2 makes value 3",
		`"makes": [2]|"makes": [1]`:               "operator 2 makes value 1",
		`"makes": [2]|"makes": []`:                "nothing makes value 2",
		`"makes": [2]|"makes": [9]`:               "operator 2 makes value 9",
		`"reads": [1, 0]|"reads": [0, 1, 0]`:      "operator 2 reads value 0 twice",
		`"limit": 10|"limit": -1`:                 "a limit of -1 bytes",
		`"saved": [0, 1]|"saved": [0, 2]`:         "value 2 is saved, and none of the forward pass",
		`"saved": [0, 1]|"saved": [1]`:            "value 0 is not saved, and cannot be recomputed",
		`"saved": [0, 1]|"saved": [0, "1"]`:       "read the request",
		`"bytes": 3|"bytes": 3, "barred": true`:   "operator 0 makes value 0, which is never saved and cannot be recomputed",
		`"bytes": 5|"bytes": 5, "barred": true`:   "value 1 is saved, which is not allowed",
		`"bytes": 1|"bytes": 1, "barred": true`:   "",
	} {
		from, to, _ := strings.Cut(change, "|")
		_, err := partition.Read([]byte(strings.Replace(chain, from, to, 1)))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	r, err := partition.Read([]byte(chain))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"saved": [0, 1], "peak": 9, "ns": 0, "before": 9}`: "",
		`{"saved": [0], "peak": 9, "ns": 7, "before": 9}`:    "",
		`{"saved": [0], "peak": 9, "ns": 0, "before": 9}`:    "takes 9 bytes and 7 ns, and not 9 and 0",
		`{"saved": [0], "peak": 8, "ns": 7, "before": 9}`:    "takes 9 bytes",
		`{"saved": [0], "peak": 9, "ns": 7, "before": 8}`:    "that there was takes 9 bytes, and not 8",
		`{"saved": [1], "peak": 9, "ns": 0}`:                 "value 0 is not saved",
		`{"saved": [3], "peak": 9, "ns": 0}`:                 "value 3 is saved",
		`{`:                                                  "read the answer",
	} {
		if err := r.Check([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestLimits has as many operators, values, bytes and nanoseconds as there may be, and one more.
func TestLimits(t *testing.T) {
	many := func(ops, values int) *partition.Problem {
		p := &partition.Problem{Ops: make([]partition.Op, ops), Values: make([]partition.Value, values)}
		for v := range values {
			p.Ops[v%ops].Makes = append(p.Ops[v%ops].Makes, int32(v))
		}
		return p
	}
	for _, n := range []int{partition.MaxOps, partition.MaxOps + 1} {
		for name, p := range map[string]*partition.Problem{"operators": many(n, 1), "values": many(1, n)} {
			if err := p.Validate(); (err == nil) != (n == partition.MaxOps) {
				t.Errorf("%d %s: %v", n, name, err)
			}
		}
	}
	for more := range int64(2) {
		bytes, ns := many(1, 2), many(2, 1)
		bytes.Values[0].Bytes, bytes.Values[1].Bytes = 1, partition.MaxBytes-1+more
		ns.Ops[0].NS, ns.Ops[1].NS = 1, partition.MaxNS-1+more
		for name, p := range map[string]*partition.Problem{"bytes": bytes, "ns": ns} {
			if err := p.Validate(); (err == nil) != (more == 0) {
				t.Errorf("%d %s too many: %v", more, name, err)
			}
		}
	}
}
