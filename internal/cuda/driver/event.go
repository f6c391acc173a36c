package driver

// #include "driver.h"
import "C"

import "gm/internal/cuda"

// EventRecord implements cuda.Device. Its events measure no time. It reuses those from EventDestroy.
func (d *Device) EventRecord(s cuda.Stream) (cuda.Event, error) {
	r := C.gm_event_record(d.c, C.uintptr_t(d.takeEvent()), C.uintptr_t(s))
	e := cuda.Event(r.value[0])
	if r.code != 0 {
		d.giveEvent(e)
		return 0, d.library.failure(r)
	}
	return e, nil
}

// takeEvent returns an unused event, 0 if there is none.
func (d *Device) takeEvent() cuda.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.events) == 0 {
		return 0
	}
	last := len(d.events) - 1
	e := d.events[last]
	d.events = d.events[:last]
	return e
}

func (d *Device) giveEvent(e cuda.Event) {
	if e == 0 {
		return
	}
	d.mu.Lock()
	d.events = append(d.events, e)
	d.mu.Unlock()
}

// EventQuery implements cuda.Device.
func (d *Device) EventQuery(e cuda.Event) (bool, error) {
	r := C.gm_event_query(d.c, C.uintptr_t(e))
	switch r.code {
	case 0:
		return true, nil
	case codeNotReady:
		return false, nil
	}
	return false, d.library.failure(r)
}

// EventSynchronize implements cuda.Device.
func (d *Device) EventSynchronize(e cuda.Event) error {
	return d.library.check(C.gm_event_synchronize(d.c, C.uintptr_t(e)))
}

// EventDestroy implements cuda.Device. It keeps the event for EventRecord; pending waits for it stay valid.
func (d *Device) EventDestroy(e cuda.Event) error {
	d.giveEvent(e)
	return nil
}
