package swap

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		op       Op
		tensor   Tensor
		handling Handling
		want     string // part of the error; none without
	}{
		"valid":         {tensor: Tensor{Bytes: 1, Uses: []int32{0}, Role: AttentionOut}, op: Op{Type: Join}},
		"unknown type":  {tensor: Tensor{Bytes: 1, Uses: []int32{0}}, op: Op{Type: Join + 1}, want: "operator 0: there is no type 10"},
		"unknown phase": {tensor: Tensor{Bytes: 1, Uses: []int32{0}}, op: Op{Phase: Update + 1}, want: "operator 0: phase 3"},
		"unknown role":  {tensor: Tensor{Bytes: 1, Uses: []int32{0}, Role: AttentionOut + 1}, want: "tensor 0: there is no role 3"},
		"no use":        {tensor: Tensor{Bytes: 1}, want: "tensor 0: made at 0 and used at []"},
		"state":         {tensor: Tensor{Bytes: 1, Uses: []int32{0}}, op: Op{Reads: []int32{1}}, want: "operator 0: states [1] of 1"},
		"states twice":  {tensor: Tensor{Bytes: 1, Uses: []int32{0}}, op: Op{Changes: []int32{0, 0}}, want: "operator 0: states [0 0] of 1"},
		"workspace":     {tensor: Tensor{Bytes: 1, Uses: []int32{0}}, op: Op{Options: []Option{{"fft", -1, 0}}}, want: `operator 0: option "fft": workspace of -1`},
		"changed":       {tensor: Tensor{Bytes: 1, Uses: []int32{0}, Changed: []int32{1}}, want: "tensor 0: changed by operator 1, which does not use it"},
		"launch":        {tensor: Tensor{Bytes: 1, Uses: []int32{0}}, op: Op{Launch: -1}, want: "operator 0: launched in -1ns"},
		"launches":      {tensor: Tensor{Bytes: 1, Uses: []int32{0}}, op: Op{Launch: 2 * maxDuration, Duration: 1}, want: "operator 0: duration of 1ns"},
		"scratch":       {tensor: Tensor{Bytes: 1, Uses: []int32{0}, Scratch: -1}, want: "tensor 0: recomputed with -1 bytes beside it"},
		"relaunch":      {tensor: Tensor{Bytes: 1, Uses: []int32{0}, Relaunch: -1}, want: "tensor 0: layer 0, recomputed in 0s, launched in -1ns"},
		"handling":      {tensor: Tensor{Bytes: 1, Uses: []int32{0}}, handling: Handling{Free: 2 * maxHandling}, want: "actions take the program [0s 2m0s"},
		"over itself":   {tensor: Tensor{Bytes: 1, Uses: []int32{0}, Over: []int32{0}}, want: "tensor 0: in the place of tensor 0, which operator 0 does not use"},
	} {
		g := Graph{Ops: []Op{test.op}, Tensors: []Tensor{test.tensor}, States: []string{"parameter"}, Handling: test.handling}
		err := g.Validate()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, expected %q", name, err, test.want)
		}
	}
}

// TestLeast has a tensor that the operator that makes it uses too: it is there once.
func TestLeast(t *testing.T) {
	g := Graph{
		Ops:     []Op{{Base: 5}, {Base: 10}, {Base: 40}},
		Tensors: []Tensor{{Bytes: 20, Made: 0, Uses: []int32{0, 1}}, {Bytes: 3, Made: 1, Uses: []int32{2}}},
	}
	if got := g.Least(); got != 43 {
		t.Errorf("%d bytes", got)
	}
	g.Ops = g.Ops[:2]
	g.Tensors[1].Uses[0] = 1
	if got := g.Least(); got != 33 {
		t.Errorf("%d bytes", got)
	}
	if got := (&Graph{}).Least(); got != 0 {
		t.Errorf("of no operators: %d bytes", got)
	}
}
