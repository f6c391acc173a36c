package swap

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		op     Op
		tensor Tensor
		want   string // part of the error; none without
	}{
		"valid":         {tensor: Tensor{Bytes: 1, Uses: []int32{0}, Role: AttentionOut}, op: Op{Type: Join}},
		"unknown type":  {tensor: Tensor{Bytes: 1, Uses: []int32{0}}, op: Op{Type: Join + 1}, want: "operator 0: there is no type 10"},
		"unknown phase": {tensor: Tensor{Bytes: 1, Uses: []int32{0}}, op: Op{Phase: Update + 1}, want: "operator 0: phase 3"},
		"unknown role":  {tensor: Tensor{Bytes: 1, Uses: []int32{0}, Role: AttentionOut + 1}, want: "tensor 0: there is no role 3"},
		"no use":        {tensor: Tensor{Bytes: 1}, want: "tensor 0: made at 0 and used at []"},
	} {
		g := Graph{Ops: []Op{test.op}, Tensors: []Tensor{test.tensor}}
		err := g.Validate()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, expected %q", name, err, test.want)
		}
	}
}
