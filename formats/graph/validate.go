package graph

import (
	"errors"
	"fmt"
)

const (
	// MaxRows is the most rows that a graph may have.
	MaxRows = 1 << 21
	// MaxBytes bounds the size of a tensor and the bytes in use besides the tensors.
	MaxBytes = 1 << 50
	// MaxTotal bounds the sum of the sizes of all tensors, each counted once and once more per use, so that sums over
	// copies do not overflow.
	MaxTotal = 1 << 60
	// MaxNS bounds the sum of the durations of all operators, and the time to recompute a tensor: 1000 hours.
	MaxNS = 1000 * 3600 * 1_000_000_000
	// MaxAgainNS bounds the sum of the times to recompute the tensors, each counted once per use.
	MaxAgainNS = 1 << 60
)

// Validator checks the rules of a graph, batch by batch:
//
//   - operators are numbered from 0 without a gap; all other rows have the operator and the phase of the operator above them;
//   - phases do not go back;
//   - tensors are numbered from 0 without a gap, in any order; each is written once, and used at least once;
//   - uses are of a tensor whose row is above; an operator uses a tensor at most once;
//   - a state has a name; what an operator changes is a state or a tensor that it uses; a tensor that may be written over another one is
//     written by this operator, which uses the other;
//   - inputs of a tensor that this operator writes are other tensors whose rows are above;
//   - durations, their sum and times to recompute a tensor are 0 to MaxNS; the latter, counted once per use, add up to at
//     most MaxAgainNS;
//   - sizes are 1 byte to MaxBytes, and add up to at most MaxTotal, each counted once and once more per use; bytes besides
//     the tensors, and those of options, are 0 to MaxBytes;
//   - layers and the numbers of saved tensors are at least -1, versions at least 0, origins -1 to MaxRows;
//   - there are at most MaxRows rows, and as many operators and tensors as the metadata says; fields that do not belong
//     to the row's kind are unset.
type Validator struct {
	meta    Meta // that the rows are checked against
	given   *Meta
	row     int64
	op      int64 // of the row above, -1 before the first
	phase   Phase
	tensors []life // by number, up to the highest seen
	written int64
	unused  int64
	ns      int64
	bytes   int64
	again   int64 // nanoseconds
}

// life records where a tensor is written and last used, as the number of the operator plus one; 0 is nowhere. Until its first use, last is
// minus the number of its row, minus one. Its size and the time to recompute it count once per use.
type life struct {
	made, last   int32
	bytes, again int64
}

// NewValidator checks the metadata and returns a Validator for the rows of its graph. The numbers of operators and
// tensors in the metadata must not change afterwards.
func NewValidator(meta *Meta) (*Validator, error) {
	switch {
	case meta.Operators < 0 || meta.Operators > MaxRows:
		return nil, fmt.Errorf("%d operators, expected 0 to %d", meta.Operators, MaxRows)
	case meta.Tensors < 0 || meta.Tensors > MaxRows:
		return nil, fmt.Errorf("%d tensors, expected 0 to %d", meta.Tensors, MaxRows)
	case meta.Capacity < 0:
		return nil, fmt.Errorf("capacity of %d bytes", meta.Capacity)
	case meta.ComputeNS < 0:
		return nil, fmt.Errorf("operators that take %d ns", meta.ComputeNS)
	case meta.PlainPeak < 0:
		return nil, fmt.Errorf("peak of %d bytes", meta.PlainPeak)
	case meta.LowerBound < 0:
		return nil, fmt.Errorf("lower bound of %d bytes", meta.LowerBound)
	}
	return &Validator{meta: *meta, given: meta, op: -1}, nil
}

// Check checks the next rows. Its error names the first row that breaks a rule, counted from the first batch.
func (v *Validator) Check(b *Batch) error {
	for i := range b.Kind {
		r := b.Row(i)
		if reason := v.reason(&r); reason != "" {
			return fmt.Errorf("row %d: %s", v.row, reason)
		}
		v.note(&r)
		v.row++
	}
	return nil
}

// Close checks the rules that depend on the whole graph, and that the metadata has not changed since NewValidator.
func (v *Validator) Close() error {
	switch {
	case v.given.Operators != v.meta.Operators || v.given.Tensors != v.meta.Tensors:
		return errors.New("operators or tensors changed after rows were checked against them")
	case v.op+1 != v.meta.Operators:
		return fmt.Errorf("%d operators, %d according to its metadata", v.op+1, v.meta.Operators)
	case v.written != v.meta.Tensors:
		return fmt.Errorf("%d tensors, %d according to its metadata", v.written, v.meta.Tensors)
	case v.unused > 0:
		for i, t := range v.tensors {
			if t.last < 0 {
				return fmt.Errorf("row %d: tensor %d is never used: it needs a row of kind use", -1-t.last, i)
			}
		}
	}
	return nil
}

// note records a row that breaks no rule.
func (v *Validator) note(r *Row) {
	switch r.Kind {
	case KindOp:
		v.op, v.phase = r.Operator, r.Phase
		v.ns += r.DurationNS
	case KindTensor:
		if n := int(r.Tensor) + 1 - len(v.tensors); n > 0 {
			v.tensors = append(v.tensors, make([]life, n)...)
		}
		v.tensors[r.Tensor] = life{made: int32(r.Operator) + 1, last: int32(-1 - v.row), bytes: r.Bytes, again: r.RecomputeNS}
		v.written++
		v.unused++
		v.bytes += r.Bytes
	case KindUse:
		t := &v.tensors[r.Tensor]
		if t.last < 0 {
			v.unused--
		}
		t.last = int32(r.Operator) + 1
		v.bytes += t.bytes
		v.again += t.again
	}
}

// reason says which rule r breaks; "" for none.
func (v *Validator) reason(r *Row) string {
	switch {
	case v.row >= MaxRows:
		return fmt.Sprintf("a graph has at most %d rows", MaxRows)
	case r.Kind < 0 || int(r.Kind) >= len(kindNames):
		return fmt.Sprintf("unknown kind %d", r.Kind)
	case r.Phase < 0 || int(r.Phase) >= len(phaseNames):
		return fmt.Sprintf("unknown phase %d", r.Phase)
	case *r != r.own():
		return fmt.Sprintf("a row of kind %s has values in columns of other kinds", r.Kind)
	case r.Kind == KindOp:
		return v.reasonOp(r)
	case v.op < 0:
		return fmt.Sprintf("a row of kind %s before the first operator", r.Kind)
	case r.Operator != v.op:
		return fmt.Sprintf("operator %d, expected %d as in the row above", r.Operator, v.op)
	case r.Phase != v.phase:
		return fmt.Sprintf("phase %s at an operator of phase %s", r.Phase, v.phase)
	case r.Kind == KindReads || r.Kind == KindChanges && r.Tensor < 0:
		return reasonState(r)
	case r.Kind == KindOption:
		return reasonOption(r)
	case r.Tensor < 0 || r.Tensor >= v.meta.Tensors:
		return fmt.Sprintf("tensor %d of %d", r.Tensor, v.meta.Tensors)
	case r.Kind == KindTensor:
		return v.reasonTensor(r)
	}
	return v.reasonUse(r)
}

// reasonState checks rows about a state.
func reasonState(r *Row) string {
	switch {
	case r.Tensor < -1:
		return fmt.Sprintf("%s of tensor %d", r.Kind, r.Tensor)
	case r.Name == 0:
		return fmt.Sprintf("%s without the name of a state", r.Kind)
	}
	return ""
}

func reasonOption(r *Row) string {
	switch {
	case r.Name == 0:
		return "option without a name"
	case r.Bytes < 0 || r.Bytes > MaxBytes:
		return fmt.Sprintf("workspace of %d bytes", r.Bytes)
	case r.DurationNS < 0 || r.DurationNS > MaxNS:
		return fmt.Sprintf("duration of %d ns", r.DurationNS)
	}
	return ""
}

func (v *Validator) reasonOp(r *Row) string {
	switch {
	case r.Operator != v.op+1:
		return fmt.Sprintf("operator %d, expected %d", r.Operator, v.op+1)
	case r.Operator >= v.meta.Operators:
		return fmt.Sprintf("operator %d of %d", r.Operator, v.meta.Operators)
	case r.Phase < v.phase:
		return fmt.Sprintf("phase %s after %s", r.Phase, v.phase)
	case r.Layer < -1:
		return fmt.Sprintf("layer %d", r.Layer)
	case r.DurationNS < 0 || r.DurationNS > MaxNS:
		return fmt.Sprintf("duration of %d ns", r.DurationNS)
	case v.ns+r.DurationNS > MaxNS:
		return fmt.Sprintf("the operators take more than %d ns", MaxNS)
	case r.BaseBytes < 0 || r.BaseBytes > MaxBytes:
		return fmt.Sprintf("%d bytes besides the tensors", r.BaseBytes)
	case r.Origin < -1 || r.Origin >= MaxRows:
		return fmt.Sprintf("origin %d", r.Origin)
	}
	return ""
}

func (v *Validator) reasonTensor(r *Row) string {
	switch {
	case v.life(r.Tensor).made > 0:
		return fmt.Sprintf("tensor %d is written by operator %d already", r.Tensor, v.life(r.Tensor).made-1)
	case r.Bytes < 1 || r.Bytes > MaxBytes:
		return fmt.Sprintf("tensor of %d bytes", r.Bytes)
	case v.bytes+r.Bytes > MaxTotal:
		return fmt.Sprintf("the tensors have more than %d bytes", MaxTotal)
	case r.Layer < -1:
		return fmt.Sprintf("layer %d", r.Layer)
	case r.RowBytes < 0 || r.RowBytes > 0 && r.Bytes%r.RowBytes != 0:
		return fmt.Sprintf("rows of %d bytes in %d", r.RowBytes, r.Bytes)
	case r.RecomputeNS < 0 || r.RecomputeNS > MaxNS:
		return fmt.Sprintf("recomputed in %d ns", r.RecomputeNS)
	case r.Saved < -1:
		return fmt.Sprintf("saved as number %d", r.Saved)
	case r.Version < 0:
		return fmt.Sprintf("version %d", r.Version)
	}
	return ""
}

// reasonUse checks rows about a tensor whose own row is above them.
func (v *Validator) reasonUse(r *Row) string {
	t, at := v.life(r.Tensor), r.Operator+1
	switch {
	case t.made == 0:
		return fmt.Sprintf("%s of tensor %d, which is not written yet", r.Kind, r.Tensor)
	case r.Kind == KindChanges && r.Name != 0:
		return fmt.Sprintf("changes of tensor %d and of a state in one row", r.Tensor)
	case r.Kind == KindChanges && int64(t.last) != at:
		return fmt.Sprintf("changes of tensor %d, which operator %d does not use", r.Tensor, r.Operator)
	case r.Kind == KindInPlace && int64(t.made) != at:
		return fmt.Sprintf("inplace of tensor %d, which operator %d writes", r.Tensor, t.made-1)
	case r.Kind == KindInPlace && (r.Input == r.Tensor || int64(v.life(r.Input).last) != at):
		return fmt.Sprintf("tensor %d in the place of tensor %d, which operator %d does not use", r.Tensor, r.Input, r.Operator)
	case r.Kind == KindUse && int64(t.last) == at:
		return fmt.Sprintf("second use of tensor %d by operator %d", r.Tensor, r.Operator)
	case r.Kind == KindUse && t.bytes > MaxTotal-v.bytes:
		return fmt.Sprintf("the tensors have more than %d bytes, counted once per use", int64(MaxTotal))
	case r.Kind == KindUse && t.again > MaxAgainNS-v.again:
		return fmt.Sprintf("recomputing the tensors once per use takes more than %d ns", int64(MaxAgainNS))
	case r.Kind == KindFrom && int64(t.made) != at:
		return fmt.Sprintf("from of tensor %d, which operator %d writes", r.Tensor, t.made-1)
	case r.Kind == KindFrom && (r.Input == r.Tensor || v.life(r.Input).made == 0):
		return fmt.Sprintf("tensor %d is recomputed from tensor %d, which is not written before it", r.Tensor, r.Input)
	}
	return ""
}

// life returns what is known about a tensor.
func (v *Validator) life(tensor int64) life {
	if tensor < 0 || tensor >= int64(len(v.tensors)) {
		return life{}
	}
	return v.tensors[tensor]
}
