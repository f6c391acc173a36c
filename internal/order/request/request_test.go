package request

import (
	"strings"
	"testing"
)

// diamond is an operator that two others follow in any order, and one behind both.
const diamond = `{"ops": 4, "before": [[2, 3]], "limit_ns": 1000, "tensors": [{"bytes": 5, "ops": [0, 1, 2]}, {"bytes": 7, "ops": [1, 3]}]}`

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		diamond:                                  "",
		`{`:                                      "read the request",
		`{"ops": 0, "limit_ns": 1}`:              "0 operators",
		`{"ops": 9999999, "limit_ns": 1}`:        "9999999 operators",
		`{"ops": 2, "limit_ns": 0}`:              "in 0 ns",
		`{"ops": 2, "limit_ns": 99999999999999}`: "in 99999999999999 ns",
		`{"ops": 2, "limit_ns": 1, "before": [[1, 0]]}`:                                      "operator 1 before operator 0",
		`{"ops": 2, "limit_ns": 1, "before": [[-1, 0]]}`:                                     "operator -1",
		`{"ops": 2, "limit_ns": 1, "tensors": [{"bytes": 1, "ops": [0, 2]}]}`:                "not ascending",
		`{"ops": 2, "limit_ns": 1, "tensors": [{"bytes": -1, "ops": [0]}]}`:                  "-1 bytes",
		`{"ops": 2, "limit_ns": 1, "tensors": [{"bytes": 1, "ops": []}]}`:                    "no operator",
		`{"ops": 2, "limit_ns": 1, "tensors": [{"bytes": 2000000000000000000, "ops": [0]}]}`: "2000000000000000000 bytes",
		`{"ops": 2, "limit_ns": 1, "tensors": [{"bytes": "1", "ops": [0]}, "more"]}`:         "read the request",
	} {
		if _, err := Read([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	r, err := Read([]byte(diamond))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"order": [0, 1, 2, 3], "peak": 12}`:    "",
		`{"order": [0, 2, 1, 3], "peak": 12}`:    "",
		`{"order": [0, 2, 1, 3], "peak": 11}`:    "the order's peak is 12 bytes",
		`{"order": [0, 1, 3, 2], "peak": 12}`:    "operator 3 is before operator 2",
		`{"order": [1, 0, 2, 3], "peak": 12}`:    "operator 1 is before operator 0",
		`{"order": [0, 1, 2], "peak": 12}`:       "an order of 3 operators, of 4",
		`{"order": [0, 1, 1, 3], "peak": 12}`:    "operator 1 is unknown or there before",
		`{"order": [0, 1, 2, 4], "peak": 12}`:    "operator 4 is unknown",
		`{"order": [0, 1, 2, 3.5], "peak": 12}`:  "read the answer",
		`{"order": [0, 1, 2, 3, 3], "peak": 12}`: "an order of 5 operators",
	} {
		if err := r.Check([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
