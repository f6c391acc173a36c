package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// MaxRows is the most rows that a schedule may have, and the most operators and tensors of its graph.
	MaxRows = 1 << 21
	// MaxBytes bounds what an action copies.
	MaxBytes = 1 << 50
	// MaxTotal bounds the sum of all copies, in bytes, so that sums of them do not overflow.
	MaxTotal = 1 << 60
	// MaxPeak bounds peaks, so that sums with sizes do not overflow.
	MaxPeak = 1 << 61
	// MaxGPUs bounds the GPUs of a host.
	MaxGPUs = 1 << 20
)

// Validator checks the rules of a schedule, batch by batch:
//
//   - actions are in the order of the operators at which they are carried out;
//   - operators and tensors are those of the graph: numbered from 0, and below the numbers that the metadata gives;
//   - the lane is that of the kind;
//   - copies are of 1 byte to MaxBytes, and their slots are -1 or lie entirely in the first HostPeak bytes of host memory;
//     other actions have no slot, and 0 to MaxBytes bytes;
//   - a prefetch is of a tensor that was offloaded, with the bytes and the slot of its last offload;
//   - all bytes add up to at most MaxTotal, and there are at most MaxRows rows.
type Validator struct {
	meta     Meta // that the rows are checked against
	given    *Meta
	row      int64
	operator int64
	total    int64           // bytes
	copies   map[int64]place // of tensors
}

// place is where the last copy of a tensor to the host went.
type place struct{ bytes, slot int64 }

// NewValidator checks the metadata and returns a Validator for the rows of its schedule. The numbers that the rows are
// checked against must not change afterwards.
func NewValidator(meta *Meta) (*Validator, error) {
	switch {
	case meta.Operators < 0 || meta.Operators > MaxRows:
		return nil, fmt.Errorf("graph of %d operators, expected 0 to %d", meta.Operators, MaxRows)
	case meta.Tensors < 0 || meta.Tensors > MaxRows:
		return nil, fmt.Errorf("graph of %d tensors, expected 0 to %d", meta.Tensors, MaxRows)
	case meta.DeviceBudget < 0 || meta.HostBudget < 0:
		return nil, fmt.Errorf("budgets of %d bytes on the device and %d on the host", meta.DeviceBudget, meta.HostBudget)
	case meta.Peak < 0 || meta.Peak > MaxPeak || meta.PlainPeak < 0 || meta.PlainPeak > MaxPeak:
		return nil, fmt.Errorf("peak of %d bytes, %d when nothing is moved", meta.Peak, meta.PlainPeak)
	case meta.HostPeak < 0 || meta.HostPeak > MaxPeak:
		return nil, fmt.Errorf("peak of %d bytes of host memory", meta.HostPeak)
	case meta.StepNS < 0 || meta.PlainNS < 0:
		return nil, fmt.Errorf("step of %d ns, %d when nothing is moved", meta.StepNS, meta.PlainNS)
	case meta.GPUs < 0 || meta.GPUs > MaxGPUs:
		return nil, fmt.Errorf("copies of %d GPUs at the same time, expected 0 to %d", meta.GPUs, MaxGPUs)
	case meta.Link != "" && !json.Valid([]byte(meta.Link)):
		return nil, errors.New("link is no JSON")
	}
	return &Validator{meta: *meta, given: meta, copies: map[int64]place{}}, nil
}

// Check checks the next rows. Its error names the first row that breaks a rule, counted from the first batch.
func (v *Validator) Check(b *Batch) error {
	for i := range b.Kind {
		a := b.Row(i)
		if reason := v.reason(&a); reason != "" {
			return fmt.Errorf("row %d: %s", v.row, reason)
		}
		if a.Kind == Offload {
			v.copies[a.Tensor] = place{a.Bytes, a.Slot}
		}
		v.operator = a.Operator
		v.total += a.Bytes
		v.row++
	}
	return nil
}

// Close checks that the metadata has not changed since NewValidator.
func (v *Validator) Close() error {
	if v.given.Operators != v.meta.Operators || v.given.Tensors != v.meta.Tensors || v.given.HostPeak != v.meta.HostPeak {
		return errors.New("operators, tensors or peak of host memory changed after rows were checked against them")
	}
	return nil
}

// reason says which rule a breaks; "" for none.
func (v *Validator) reason(a *Action) string {
	switch {
	case v.row >= MaxRows:
		return fmt.Sprintf("a schedule has at most %d rows", MaxRows)
	case a.Kind < 0 || int(a.Kind) >= len(kindNames):
		return fmt.Sprintf("unknown kind %d", a.Kind)
	case a.Lane != a.Kind.Lane():
		return fmt.Sprintf("%s in lane %s, expected %s", a.Kind, a.Lane, a.Kind.Lane())
	case a.Tensor < 0 || a.Tensor >= v.meta.Tensors:
		return fmt.Sprintf("tensor %d of %d", a.Tensor, v.meta.Tensors)
	case a.Operator < 0 || a.Operator >= v.meta.Operators:
		return fmt.Sprintf("at operator %d of %d", a.Operator, v.meta.Operators)
	case a.Operator < v.operator:
		return fmt.Sprintf("at operator %d, after the %d of the row above", a.Operator, v.operator)
	case a.Bytes < 0 || a.Bytes > MaxBytes:
		return fmt.Sprintf("%s of %d bytes", a.Kind, a.Bytes)
	case a.Bytes > MaxTotal-v.total:
		return fmt.Sprintf("the bytes of the rows add up to more than %d", int64(MaxTotal))
	case a.Lane != Compute:
		return v.reasonCopy(a)
	case a.Slot != -1:
		return fmt.Sprintf("%s has slot %d, expected -1", a.Kind, a.Slot)
	}
	return ""
}

func (v *Validator) reasonCopy(a *Action) string {
	switch {
	case a.Bytes == 0:
		return fmt.Sprintf("%s of 0 bytes", a.Kind)
	case a.Slot < -1:
		return fmt.Sprintf("slot %d", a.Slot)
	case a.Slot >= 0 && a.Slot > v.meta.HostPeak-a.Bytes:
		return fmt.Sprintf("%d bytes at %d end beyond the %d bytes of host memory", a.Bytes, a.Slot, v.meta.HostPeak)
	case a.Kind == Offload:
		return ""
	}
	out, ok := v.copies[a.Tensor]
	switch {
	case !ok:
		return fmt.Sprintf("prefetch of tensor %d, which was not offloaded", a.Tensor)
	case out != place{a.Bytes, a.Slot}:
		return fmt.Sprintf("prefetch of %d bytes at %d, offloaded were %d at %d", a.Bytes, a.Slot, out.bytes, out.slot)
	}
	return ""
}
