package exporter

import (
	"fmt"
	"time"

	"gm/formats/trace"
)

// rmm writes the log that RMM's logging adaptor would have written for these allocations.
func (x *export) rmm() error {
	x.out.WriteString("Thread,Time,Action,Pointer,Size,Stream\n")
	return x.calls(func(_ *trace.Reader, e *trace.Event, b *block) error {
		t := time.Unix(0, e.TimeNS).UTC().Format("15:04:05.000000")
		var err error
		switch {
		case e.Op == trace.OpOOM:
			_, err = fmt.Fprintf(x.out, "%d,%s,allocate failure,(nil),%d,%#x\n", e.Thread, t, e.Size, uint64(e.Stream))
		case b == nil:
			if e.Op == trace.OpMark {
				x.leave("marks are left out: an RMM log has none")
			}
		case e.Op == trace.OpAlloc:
			_, err = fmt.Fprintf(x.out, "%d,%s,allocate,%#x,%d,%#x\n", e.Thread, t, b.addr, b.size, uint64(b.stream))
		default:
			_, err = fmt.Fprintf(x.out, "%d,%s,free,%#x,%d,%#x\n", e.Thread, t, b.addr, b.size, uint64(b.stream))
		}
		return err
	})
}

// calls calls write with a block for each allocation and for each free that makes memory reusable, and with nil for marks and failed
// requests.
func (x *export) calls(write func(*trace.Reader, *trace.Event, *block) error) error {
	s, err := x.survey()
	if err != nil {
		return err
	}
	if n := len(s.used()); n > 1 {
		x.warn(fmt.Sprintf("the allocations of %d GPUs are in one file: the format does not tell them apart", n))
	}
	bs := newLiveBlocks()
	err = x.each(func(r *trace.Reader, _ int64, e *trace.Event) error {
		switch {
		case e.Op == trace.OpMark:
			return write(r, e, nil)
		case !s.exported(e):
			return nil
		}
		switch e.Op {
		case trace.OpOOM:
			return write(r, e, nil)
		case trace.OpAlloc:
			if e.Level == trace.LevelDriver && !onDevice(r, e) {
				return nil
			}
			return write(r, e, bs.alloc(e))
		case trace.OpFree, trace.OpFreeCompleted:
			if b := bs.live[e.ID]; b != nil {
				bs.done(e.ID)
				return write(r, e, b)
			}
		}
		return nil
	})
	x.warnLeft()
	return err
}

// onDevice reports whether a row of the driver's level is about device memory of its own.
func onDevice(r *trace.Reader, e *trace.Event) bool {
	kind, _ := trace.ParseDriverTag(r.Strings().Text(e.Tag))
	return kind.Obtained()
}
