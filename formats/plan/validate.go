package plan

import (
	"errors"
	"fmt"
	"math"
)

const (
	// MaxBytes bounds sizes, offsets and the peak of a plan, so that their sums do not overflow.
	MaxBytes = 1 << 60
	// MaxDevice is the highest ordinal of a GPU.
	MaxDevice = 1023
	// MaxRows is the most rows that a plan may have.
	MaxRows = 1 << 23
	// MaxTraceRows is the most rows that the trace of a plan may have.
	MaxTraceRows = 1 << 26
	// MaxTime bounds times, in ns since the Unix epoch.
	MaxTime = 1 << 62
	// MaxTotal bounds the sum of the sizes of all tensors, and that of the segments, in bytes.
	MaxTotal = 1 << 61
)

// Validator checks the rules of a plan, batch by batch:
//
//   - tensors are in the order of their allocation: both alloc and id grow strictly from row to row;
//   - 0 <= alloc < free <= the rows of the trace <= MaxTraceRows, and 0 <= alloc_ns <= free_ns <= MaxTime;
//   - sizes are at least 1 byte; offsets are not negative, and are multiples of the alignment;
//   - the offset plus the size, rounded up to the alignment, is at most the peak, and so is the sum of the ends of the arenas;
//   - the sizes of all tensors add up to at most MaxTotal, and there are at most MaxRows rows;
//   - devices are 0 to MaxDevice.
type Validator struct {
	meta  Meta // that the rows are checked against
	given *Meta
	row   int64
	alloc int64
	id    int64
	total int64           // bytes of all tensors
	ends  map[arena]int64 // bytes, of the arenas so far
	peak  int64           // bytes: the sum of the ends
}

// arena is the address range that a tensor lies in.
type arena struct{ device, code int32 }

// NewValidator checks the metadata and returns a Validator for the rows of its plan. The peak, rows and alignment in
// the metadata must not change afterwards.
func NewValidator(meta *Meta) (*Validator, error) {
	switch {
	case meta.Alignment < 1 || meta.Alignment > MaxBytes:
		return nil, fmt.Errorf("alignment of %d bytes", meta.Alignment)
	case meta.Peak < 0 || meta.Peak > MaxBytes:
		return nil, fmt.Errorf("peak of %d bytes", meta.Peak)
	case meta.LowerBound < 0 || meta.LowerBound > meta.Peak:
		return nil, fmt.Errorf("lower bound of %d bytes, with a peak of %d", meta.LowerBound, meta.Peak)
	case meta.Rows < 0 || meta.Rows > MaxTraceRows:
		return nil, fmt.Errorf("trace of %d rows", meta.Rows)
	case meta.First < 0 || meta.First > meta.End || meta.End > meta.Rows:
		return nil, fmt.Errorf("plan of the rows %d to %d of a trace of %d", meta.First, meta.End, meta.Rows)
	case meta.Period != 0 && meta.Period != meta.End-meta.First:
		return nil, fmt.Errorf("period of %d rows, in a plan of the rows %d to %d", meta.Period, meta.First, meta.End)
	}
	if err := meta.checkRecorded(); err != nil {
		return nil, err
	}
	return &Validator{meta: *meta, given: meta, alloc: -1, ends: map[arena]int64{}}, nil
}

// checkRecorded checks the metadata about the traced allocator.
func (m *Meta) checkRecorded() error {
	if len(m.Segments)%3 != 0 || len(m.Emptied)%2 != 0 || m.Preexisting < 0 {
		return fmt.Errorf("segments are %d numbers, three each, emptied %d, two each, preexisting %d", len(m.Segments), len(m.Emptied), m.Preexisting)
	}
	total := int64(0)
	for i := 0; i < len(m.Segments); i += 3 {
		device, addr, size := m.Segments[i], m.Segments[i+1], m.Segments[i+2]
		if device < 0 || device > MaxDevice || addr <= 0 || size <= 0 || size > MaxBytes || addr > math.MaxInt64-size {
			return fmt.Errorf("segment %d: %d bytes at %#x of device %d", i/3, size, addr, device)
		}
		if total += size; total > MaxTotal {
			return fmt.Errorf("the segments add up to more than %d bytes", int64(MaxTotal))
		}
	}
	for i := 0; i < len(m.Emptied); i += 2 {
		if device, row := m.Emptied[i], m.Emptied[i+1]; device < 0 || device > MaxDevice || row < 0 || row >= m.Rows {
			return fmt.Errorf("emptied %d: at row %d of device %d", i/2, row, device)
		}
	}
	return nil
}

// Check checks the next rows. Its error names the first row that breaks a rule, counted from the first batch.
func (v *Validator) Check(b *Batch) error {
	for i := range b.ID {
		t := b.Row(i)
		if reason := v.reason(&t); reason != "" {
			return fmt.Errorf("row %d: %s", v.row, reason)
		}
		v.note(&t)
	}
	return nil
}

// Close checks that the metadata has not changed since NewValidator.
func (v *Validator) Close() error {
	if v.given.Peak != v.meta.Peak || v.given.Rows != v.meta.Rows || v.given.Alignment != v.meta.Alignment {
		return errors.New("peak, rows or alignment changed after rows were checked against them")
	}
	return nil
}

// note records a row that breaks no rule.
func (v *Validator) note(t *Tensor) {
	v.alloc, v.id = t.Alloc, t.ID
	v.total += t.Size
	v.row++
	if grown := v.grown(t); grown > 0 {
		v.ends[arena{t.Device, t.Arena}] += grown
		v.peak += grown
	}
}

// end returns where t ends in its arena, in bytes.
func (v *Validator) end(t *Tensor) int64 { return t.Offset + roundUp(t.Size, v.meta.Alignment) }

// grown returns by how many bytes t extends its arena; 0 or less if it does not.
func (v *Validator) grown(t *Tensor) int64 { return v.end(t) - v.ends[arena{t.Device, t.Arena}] }

// reason says which rule t breaks; "" for none.
func (v *Validator) reason(t *Tensor) string {
	switch {
	case v.row >= MaxRows:
		return fmt.Sprintf("a plan has at most %d rows", MaxRows)
	case t.ID <= v.id && v.id > 0:
		return fmt.Sprintf("id %d, expected more than the %d of the row above", t.ID, v.id)
	case t.ID < 1:
		return fmt.Sprintf("id %d, expected 1 or more", t.ID)
	case t.Alloc < 0:
		return fmt.Sprintf("alloc at row %d of the trace", t.Alloc)
	case t.Alloc <= v.alloc:
		return fmt.Sprintf("alloc at row %d of the trace, expected more than the %d of the row above", t.Alloc, v.alloc)
	case t.Free <= t.Alloc:
		return fmt.Sprintf("free at row %d of the trace, alloc at %d", t.Free, t.Alloc)
	case t.Free > v.meta.Rows:
		return fmt.Sprintf("free at row %d of a trace of %d rows", t.Free, v.meta.Rows)
	case t.AllocNS < 0:
		return fmt.Sprintf("alloc at %d ns", t.AllocNS)
	case t.FreeNS > MaxTime:
		return fmt.Sprintf("free at %d ns, expected at most %d", t.FreeNS, int64(MaxTime))
	case t.FreeNS < t.AllocNS:
		return fmt.Sprintf("free at %d ns, alloc at %d", t.FreeNS, t.AllocNS)
	case t.Device < 0 || t.Device > MaxDevice:
		return fmt.Sprintf("device %d, expected 0 to %d", t.Device, MaxDevice)
	}
	return v.reasonPlace(t)
}

func (v *Validator) reasonPlace(t *Tensor) string {
	switch {
	case t.Size < 1 || t.Size > MaxBytes:
		return fmt.Sprintf("size of %d bytes", t.Size)
	case t.Offset < 0 || t.Offset > MaxBytes:
		return fmt.Sprintf("offset of %d bytes", t.Offset)
	case t.Offset%v.meta.Alignment != 0:
		return fmt.Sprintf("offset %d is no multiple of %d", t.Offset, v.meta.Alignment)
	}
	switch end := v.end(t); {
	case end > v.meta.Peak:
		return fmt.Sprintf("ends at byte %d, beyond the peak of %d", end, v.meta.Peak)
	case v.grown(t) > v.meta.Peak-v.peak:
		return fmt.Sprintf("the arenas up to here end at byte %d, added up, beyond the peak of %d", v.peak+v.grown(t), v.meta.Peak)
	case t.Size > MaxTotal-v.total:
		return fmt.Sprintf("the sizes of the rows add up to more than %d bytes", int64(MaxTotal))
	}
	return ""
}

func roundUp(size, alignment int64) int64 {
	return (size + alignment - 1) / alignment * alignment
}
