package driver

// #include "driver.h"
import "C"

import (
	"errors"
	"time"
	"unsafe"

	"gm/internal/cuda"
)

// Transfer queues a copy and returns an event after it, to be destroyed with EventDestroy. For a timed copy it also returns the interval,
// for Elapsed. After an error, such as cuda.ErrCapturing, no part of the copy is running.
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
	c := transferOf(t, order, done, took)
	if !t.In {
		c.pause = C.uint64_t(d.pauses.use(d))
		defer d.pauses.done()
	}
	r := C.gm_transfer(d.c, c)
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

// Follow makes work queued in stream s from now on wait until e has passed. If s is being captured, it returns cuda.ErrCapturing and the
// capture continues.
func (d *Device) Follow(s cuda.Stream, e cuda.Event) error {
	return d.library.check(C.gm_stream_follow(d.c, C.uintptr_t(s), C.uintptr_t(e)))
}

// IntervalBegin starts an interval in stream s, after the work now queued in it.
func (d *Device) IntervalBegin(s cuda.Stream) (cuda.Interval, error) {
	i, err := d.newInterval()
	if err != nil {
		return cuda.Interval{}, err
	}
	return i, d.recordIn(i, i.Begin, s)
}

// IntervalEnd ends an interval after the work now queued in stream s. If that fails, it destroys i.
func (d *Device) IntervalEnd(i cuda.Interval, s cuda.Stream) error { return d.recordIn(i, i.End, s) }

// recordIn records one of the events of an interval. If that fails, it destroys the interval.
func (d *Device) recordIn(i cuda.Interval, e cuda.Event, s cuda.Stream) error {
	err := d.library.check(C.gm_event_record(d.c, C.uintptr_t(e), C.uintptr_t(s)))
	if err != nil {
		d.IntervalDestroy(i)
	}
	return err
}

// Elapsed returns the length of an interval, and false if its end has not passed yet (cuEventElapsedTime). The resolution is half a
// microsecond.
func (d *Device) Elapsed(i cuda.Interval) (time.Duration, bool, error) {
	r := C.gm_event_elapsed(d.c, C.uintptr_t(i.Begin), C.uintptr_t(i.End))
	if r.code == codeNotReady {
		return 0, false, nil
	}
	return time.Duration(r.value[0]), r.code == 0, d.library.check(r)
}

// IntervalDestroy destroys i. Its events are reused.
func (d *Device) IntervalDestroy(i cuda.Interval) {
	if i == (cuda.Interval{}) {
		return
	}
	d.mu.Lock()
	d.intervals = append(d.intervals, i)
	d.mu.Unlock()
}

// newEvent returns an unused event that measures no time.
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
