package driver

// #include "driver.h"
import "C"

import (
	"errors"
	"time"
	"unsafe"

	"gm/internal/cuda"
)

// Transfer queues a copy and returns an event behind it, which EventDestroy takes. For one that is timed it returns its time as well,
// for Elapsed. After an error nothing of the copy runs; cuda.ErrCapturing is one.
func (d *Device) Transfer(t cuda.Transfer) (done cuda.Event, took cuda.Interval, err error) {
	order, err := d.newEvent()
	if err != nil {
		return 0, cuda.Interval{}, err
	}
	defer d.giveEvent(order)
	if done, err = d.newEvent(); err != nil {
		return 0, cuda.Interval{}, err
	}
	if t.Timed {
		if took, err = d.newInterval(); err != nil {
			d.giveEvent(done)
			return 0, cuda.Interval{}, err
		}
	}
	r := C.gm_transfer(d.c, transferOf(t, order, done, took))
	if r.code != 0 {
		d.giveEvent(done)
		d.IntervalDestroy(took)
		return 0, cuda.Interval{}, d.library.failure(r)
	}
	return done, took, nil
}

func transferOf(t cuda.Transfer, order, done cuda.Event, took cuda.Interval) C.struct_gm_transfer {
	c := C.struct_gm_transfer{
		lane: C.uintptr_t(t.Lane), after: C.uintptr_t(t.After), wait: C.uintptr_t(t.Wait),
		order: C.uintptr_t(order), begin: C.uintptr_t(took.Begin), end: C.uintptr_t(took.End), done: C.uintptr_t(done),
		device: C.uint64_t(t.Device), host: C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(t.Host)))), size: C.uint64_t(len(t.Host)),
		first: C.uint64_t(t.First), piece: C.uint64_t(t.Piece),
	}
	if t.In {
		c.in = 1
	}
	return c
}

// Follow makes the work that stream s gets from now on wait until e has passed. If s is captured that is cuda.ErrCapturing, and the
// capture goes on.
func (d *Device) Follow(s cuda.Stream, e cuda.Event) error {
	return d.library.check(C.gm_stream_follow(d.c, C.uintptr_t(s), C.uintptr_t(e)))
}

// IntervalBegin begins to time stream s behind the work that it holds now.
func (d *Device) IntervalBegin(s cuda.Stream) (cuda.Interval, error) {
	i, err := d.newInterval()
	if err != nil {
		return cuda.Interval{}, err
	}
	return i, d.recordIn(i, i.Begin, s)
}

// IntervalEnd ends what IntervalBegin began behind the work that stream s holds now. Where that fails i is forgotten.
func (d *Device) IntervalEnd(i cuda.Interval, s cuda.Stream) error { return d.recordIn(i, i.End, s) }

// recordIn records one of the events of an interval, which it destroys where that fails.
func (d *Device) recordIn(i cuda.Interval, e cuda.Event, s cuda.Stream) error {
	err := d.library.check(C.gm_event_record(d.c, C.uintptr_t(e), C.uintptr_t(s)))
	if err != nil {
		d.IntervalDestroy(i)
	}
	return err
}

// Elapsed returns the length of an interval, false while it has not passed (cuEventElapsedTime). The clock ticks every half microsecond.
func (d *Device) Elapsed(i cuda.Interval) (time.Duration, bool, error) {
	r := C.gm_event_elapsed(d.c, C.uintptr_t(i.Begin), C.uintptr_t(i.End))
	if r.code == codeNotReady {
		return 0, false, nil
	}
	return time.Duration(r.value[0]), r.code == 0, d.library.check(r)
}

// IntervalDestroy forgets i. Its events are used again.
func (d *Device) IntervalDestroy(i cuda.Interval) {
	if i == (cuda.Interval{}) {
		return
	}
	d.mu.Lock()
	d.intervals = append(d.intervals, i)
	d.mu.Unlock()
}

// newEvent returns an event that measures no time and that nobody uses.
func (d *Device) newEvent() (cuda.Event, error) {
	if e := d.takeEvent(); e != 0 {
		return e, nil
	}
	return d.createEvent(0)
}

func (d *Device) newInterval() (cuda.Interval, error) {
	d.mu.Lock()
	if last := len(d.intervals) - 1; last >= 0 {
		i := d.intervals[last]
		d.intervals = d.intervals[:last]
		d.mu.Unlock()
		return i, nil
	}
	d.mu.Unlock()
	begin, err := d.createEvent(1)
	if err != nil {
		return cuda.Interval{}, err
	}
	end, err := d.createEvent(1)
	if err != nil {
		return cuda.Interval{}, errors.Join(err, d.library.check(C.gm_event_destroy(d.c, C.uintptr_t(begin))))
	}
	return cuda.Interval{Begin: begin, End: end}, nil
}

func (d *Device) createEvent(timed C.int) (cuda.Event, error) {
	r := C.gm_event_create(d.c, timed)
	return cuda.Event(r.value[0]), d.library.check(r)
}
