package replay

import (
	"errors"
	"fmt"

	"gm/formats/trace"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// recordedDevice is a device that behaves as recorded: it hands out the recorded addresses, is full where it was full, and reports every
// call that was not recorded as a divergence.
type recordedDevice struct {
	*sim.Device
	script   []segmentRow // recorded, not yet made
	diverged *Divergence
}

type segmentRow struct {
	row  int64
	op   trace.Op
	addr cuda.Ptr
	size int64
}

func (s segmentRow) String() string {
	text := s.op.String()
	if s.size > 0 {
		text += fmt.Sprintf(" of %d bytes", s.size)
	}
	if s.addr != 0 {
		text += fmt.Sprintf(" at %#x", uint64(s.addr))
	}
	return text
}

// Divergence is the first place where a replay differs from the recording.
type Divergence struct {
	Row  int64  `json:"row"`
	Want string `json:"recorded"`
	Got  string `json:"replayed"`
}

// Error implements error.
func (d *Divergence) Error() string {
	return fmt.Sprintf("row %d: recorded %s, replayed %s", d.Row, d.Want, d.Got)
}

func (d *recordedDevice) push(e *trace.Event, row int64) {
	d.script = append(d.script, segmentRow{row: row, op: e.Op, addr: cuda.Ptr(e.Addr), size: e.Size})
}

func (d *recordedDevice) pop() { d.script = d.script[1:] }

// frees counts the segments or ranges whose release is recorded next.
func (d *recordedDevice) frees() int {
	n := 0
	for n < len(d.script) && (d.script[n].op == trace.OpSegmentFree || d.script[n].op == trace.OpSegmentUnmap) {
		n++
	}
	return n
}

// returned lists the addresses whose release is recorded next.
func (d *recordedDevice) returned() []cuda.Ptr {
	var all []cuda.Ptr
	for _, s := range d.script[:d.frees()] {
		all = append(all, s.addr)
	}
	return all
}

// expect takes the next recorded row if it is this one. A request for memory is refused where the next recorded row releases some; any
// other difference is a divergence.
func (d *recordedDevice) expect(op trace.Op, addr cuda.Ptr, size int64) (cuda.Ptr, error) {
	got := segmentRow{op: op, addr: addr, size: size}
	if len(d.script) == 0 {
		return 0, d.diverge("no call here", got)
	}
	next := d.script[0]
	grows := op == trace.OpSegmentAlloc
	if next.op == op && next.size == size && (grows || next.addr == addr) {
		d.pop()
		return next.addr, nil
	}
	if grows && d.frees() > 0 {
		return 0, cuda.ErrOutOfMemory
	}
	return 0, d.diverge(next.String(), got)
}

var errDiverged = errors.New("replay left the recording")

func (d *recordedDevice) diverge(want string, got segmentRow) error {
	row := int64(-1)
	if len(d.script) > 0 {
		row = d.script[0].row
	}
	if d.diverged == nil { // after the first, the allocator undoes what it did
		d.diverged = &Divergence{Row: row, Want: want, Got: got.String()}
	}
	return errDiverged
}

// MemAlloc implements cuda.Device.
func (d *recordedDevice) MemAlloc(size int64) (cuda.Ptr, error) {
	return d.expect(trace.OpSegmentAlloc, 0, size)
}

// MemFree implements cuda.Device. The size of the segment is known to the recording, not to the caller.
func (d *recordedDevice) MemFree(p cuda.Ptr) error {
	if len(d.script) > 0 && d.script[0].op == trace.OpSegmentFree && d.script[0].addr == p {
		d.pop()
		return nil
	}
	_, err := d.expect(trace.OpSegmentFree, p, 0)
	return err
}

// AddressReserve implements cuda.Device: a new range begins where it is first mapped.
func (d *recordedDevice) AddressReserve(size int64) (cuda.Ptr, error) {
	if len(d.script) == 0 || d.script[0].op != trace.OpSegmentMap {
		return 0, d.diverge("no new expandable segment here", segmentRow{op: trace.OpSegmentMap, size: size})
	}
	return d.script[0].addr, d.ReserveAt(d.script[0].addr, size)
}

// Create implements cuda.Device.
func (d *recordedDevice) Create(size int64) (cuda.Handle, error) {
	if d.frees() > 0 {
		return 0, cuda.ErrOutOfMemory
	}
	return d.Device.Create(size)
}

// SetAccess implements cuda.Device: it is called once for each range that is mapped.
func (d *recordedDevice) SetAccess(p cuda.Ptr, size int64) error {
	if _, err := d.expect(trace.OpSegmentMap, p, size); err != nil {
		return err
	}
	return d.Device.SetAccess(p, size)
}

// Unmap implements cuda.Device.
func (d *recordedDevice) Unmap(p cuda.Ptr, size int64) error {
	if _, err := d.expect(trace.OpSegmentUnmap, p, size); err != nil {
		return err
	}
	return d.Device.Unmap(p, size)
}
