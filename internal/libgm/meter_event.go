package main

import (
	"gm/internal/cuda"
)

// passedEvent stands for an event that could not be recorded: the stream was synchronized instead.
const passedEvent cuda.Event = -1

// capturer is a device that tells whether work in a stream goes into a graph.
type capturer interface {
	Capturing(s cuda.Stream) (bool, error)
}

// defaultOf stands for the default stream of another device, whose work uses memory of this one.
func defaultOf(ordinal int) cuda.Stream { return -1 - cuda.Stream(ordinal) }

// where returns the device that a stream is of, and its handle there.
func (m *meter) where(s cuda.Stream) (cuda.Device, cuda.Stream) {
	if other := -1 - s; other >= 0 && int(other) < len(m.process.gpus) {
		if g := m.process.gpus[other].Load(); g != nil {
			return g.meter.Device, 0
		}
	}
	return m.Device, s
}

// of returns the device that an event is of.
func (m *meter) of(e cuda.Event) cuda.Device {
	if dev, ok := m.away[e]; ok {
		return dev
	}
	return m.Device
}

// inGraph says whether work in a stream goes into a graph, or may.
func (m *meter) inGraph(s cuda.Stream) bool {
	dev, s := m.where(s)
	c, ok := dev.(capturer)
	if !ok {
		return true
	}
	captured, err := c.Capturing(s)
	return captured || err != nil
}

// captured says whether a stream must be left alone now. Of other devices it is not known whether they capture.
func (m *meter) captured(s cuda.Stream) bool { return (m.capturing || s < 0) && m.inGraph(s) }

// EventRecord implements cuda.Device. Where no event can be recorded it synchronizes the stream.
func (m *meter) EventRecord(s cuda.Stream) (cuda.Event, error) {
	if m.captured(s) {
		return 0, errCapturing
	}
	dev, at := m.where(s)
	e, err := dev.EventRecord(at)
	if err != nil && m.StreamSynchronize(s) == nil {
		return passedEvent, nil
	}
	if err == nil && s < 0 {
		m.away[e] = dev
	}
	return e, err
}

// EventQuery implements cuda.Device. During a capture no event passes: to ask would break it.
func (m *meter) EventQuery(e cuda.Event) (bool, error) {
	if m.capturing || e == passedEvent {
		return e == passedEvent, nil
	}
	return m.of(e).EventQuery(e)
}

// EventSynchronize implements cuda.Device.
func (m *meter) EventSynchronize(e cuda.Event) error {
	switch {
	case e == passedEvent:
		return nil
	case m.capturing:
		return errCapturing
	}
	return m.of(e).EventSynchronize(e)
}

// EventDestroy implements cuda.Device.
func (m *meter) EventDestroy(e cuda.Event) error {
	if e == passedEvent {
		return nil
	}
	dev := m.of(e)
	delete(m.away, e)
	return dev.EventDestroy(e)
}

// StreamWaitEvent implements cuda.Device.
func (m *meter) StreamWaitEvent(s cuda.Stream, e cuda.Event) error {
	switch {
	case e == passedEvent:
		return nil
	case m.captured(s):
		return errCapturing
	}
	return m.Device.StreamWaitEvent(s, e)
}

// StreamSynchronize implements cuda.Device.
func (m *meter) StreamSynchronize(s cuda.Stream) error {
	if m.capturing {
		return errCapturing
	}
	dev, at := m.where(s)
	return dev.StreamSynchronize(at)
}
