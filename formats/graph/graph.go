package graph

import "fmt"

// Row is one row of a graph. Its kind determines which fields it has; the others are as [NewRow] leaves them. Names, types, roles, dtypes
// and shapes are codes of the file's strings.
type Row struct {
	Kind        Kind
	Operator    int64 // from 0
	Tensor      int64 // from 0, -1 for none
	Input       int64 // a tensor that Tensor is recomputed from, or may be written over; -1 for none
	Name        int32 // path of the module and name of the operator; name of the tensor, the state or the option
	Type        int32 // what the operator does: "other", "conv", "linear" and so on
	Phase       Phase // of the operator, in each of its rows
	Layer       int32 // of the operator or the tensor, -1 for none
	DurationNS  int64 // nanoseconds that the operator, or the operator with the option, takes on the compute stream when nothing else runs
	BaseBytes   int64 // bytes in use besides the tensors of the graph, at the operator's peak, or while the tensor is recomputed, for that alone
	Bytes       int64 // size of the tensor, or of the option's workspace
	RecomputeNS int64 // nanoseconds that recomputing the tensor takes, 0 if it cannot be recomputed
	RowBytes    int64 // bytes of a row of the tensor, if each row can be recomputed alone; else 0
	Role        int32 // role of the tensor in its layer: "inner", "layer-input" or "attention-out"
	Origin      int64 // number of the operator in the graph that this one was reordered from, -1 if it was not

	// What the recorded program knows about the tensor.
	Saved   int32 // its number among the tensors that autograd saved, from 0; -1 if it was not saved or not recorded
	Version int64 // its version counter when it was saved
	DType   int32 // "bfloat16"
	Shape   int32 // "[8, 1024, 4096]"
}

// NewRow returns a row whose fields are unset, except for its kind, operator and phase.
func NewRow(kind Kind, operator int64, phase Phase) Row {
	return Row{Kind: kind, Operator: operator, Phase: phase, Tensor: -1, Input: -1, Layer: -1, Saved: -1, Origin: -1}
}

// own returns r without the fields that a row of its kind does not have.
func (r *Row) own() Row {
	o := NewRow(r.Kind, r.Operator, r.Phase)
	switch r.Kind {
	case KindOp:
		o.Name, o.Type, o.Layer, o.DurationNS, o.BaseBytes, o.Origin = r.Name, r.Type, r.Layer, r.DurationNS, r.BaseBytes, r.Origin
	case KindTensor:
		o.Tensor, o.Name, o.Layer, o.Bytes, o.RecomputeNS, o.RowBytes, o.Role = r.Tensor, r.Name, r.Layer, r.Bytes, r.RecomputeNS, r.RowBytes, r.Role
		o.BaseBytes = r.BaseBytes
		o.Saved, o.Version, o.DType, o.Shape = r.Saved, r.Version, r.DType, r.Shape
	case KindUse:
		o.Tensor = r.Tensor
	case KindFrom, KindInPlace:
		o.Tensor, o.Input = r.Tensor, r.Input
	case KindReads:
		o.Name = r.Name
	case KindChanges:
		o.Tensor, o.Name = r.Tensor, r.Name
	case KindOption:
		o.Name, o.Bytes, o.DurationNS = r.Name, r.Bytes, r.DurationNS
	}
	return o
}

// Kind is what a row stands for.
type Kind int8

// The kinds of rows.
const (
	KindOp      Kind = iota // an operator
	KindTensor              // a tensor, at the operator that writes it
	KindUse                 // an operator that reads a tensor, or during which the program keeps it
	KindFrom                // a tensor that another one is recomputed from, at the operator that writes the other one
	KindReads               // an operator that reads a state, which is no tensor of the graph: a parameter, a random generator
	KindChanges             // an operator that changes a state, or the contents of a tensor that it uses
	KindInPlace             // a tensor that may be written into the memory of another one, at the operator that writes it and is the other's last use
	KindOption              // another way to run an operator: with a workspace, in another time
)

var kindNames = []string{"op", "tensor", "use", "from", "reads", "changes", "inplace", "option"}

// String returns the kind's name in files.
func (k Kind) String() string { return nameOf("Kind", kindNames, int(k)) }

// Phase is the part of a step that an operator belongs to.
type Phase int8

// The phases, in order.
const (
	Forward Phase = iota
	Backward
	Update // of the parameters, by the optimizer
)

var phaseNames = []string{"forward", "backward", "update"}

// String returns the phase's name in files.
func (p Phase) String() string { return nameOf("Phase", phaseNames, int(p)) }

func nameOf(typ string, names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", typ, i)
	}
	return names[i]
}
