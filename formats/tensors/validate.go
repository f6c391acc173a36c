package tensors

import "fmt"

// MaxDevice is the highest ordinal of a GPU.
const MaxDevice = 1023

// Validator checks the rules of a table, batch by batch:
//
//   - tensors are in the order of their allocation: both alloc and id grow strictly from row to row;
//   - 0 <= alloc < free <= the rows of the trace, and 0 <= alloc_ns <= free_ns;
//   - sizes are at least 1 byte; devices are 0 to MaxDevice.
type Validator struct {
	meta  *Meta
	row   int64
	alloc int64 // of the row before
	id    int64
}

func (m *Meta) check() error {
	if m.Rows < 0 {
		return fmt.Errorf("trace of %d rows", m.Rows)
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
		v.alloc, v.id = t.Alloc, t.ID
		v.row++
	}
	return nil
}

// Close implements [column.Rules].
func (v *Validator) Close() error { return nil }

// reason says which rule t breaks; "" for none.
func (v *Validator) reason(t *Tensor) string {
	switch {
	case t.ID <= v.id:
		return fmt.Sprintf("id %d, expected more than %d", t.ID, v.id)
	case t.Alloc <= v.alloc:
		return fmt.Sprintf("alloc at row %d of the trace, expected more than %d", t.Alloc, v.alloc)
	case t.Free <= t.Alloc || t.Free > v.meta.Rows:
		return fmt.Sprintf("free at row %d of a trace of %d rows, alloc at %d", t.Free, v.meta.Rows, t.Alloc)
	case t.AllocNS < 0 || t.FreeNS < t.AllocNS:
		return fmt.Sprintf("free at %d ns, alloc at %d", t.FreeNS, t.AllocNS)
	case t.Size < 1:
		return fmt.Sprintf("size of %d bytes", t.Size)
	case t.Device < 0 || t.Device > MaxDevice:
		return fmt.Sprintf("device %d, expected 0 to %d", t.Device, MaxDevice)
	}
	return ""
}
