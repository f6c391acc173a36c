package main

import (
	"gm/internal/cuda"
)

// passedEvent stands for an event that could not be recorded, in whose place the stream was waited for.
const passedEvent cuda.Event = -1

// capturer is a device that tells whether work in a stream goes into a graph.
type capturer interface {
	Capturing(s cuda.Stream) (bool, error)
}

// captured says whether a stream must be left alone now.
func (m *meter) captured(s cuda.Stream) bool {
	c, ok := m.Device.(capturer)
	if !m.capturing || !ok {
		return m.capturing
	}
	captured, err := c.Capturing(s)
	return captured || err != nil
}

// EventRecord implements cuda.Device. Where no event can be recorded the stream is waited for.
func (m *meter) EventRecord(s cuda.Stream) (cuda.Event, error) {
	if m.captured(s) {
		return 0, errCapturing
	}
	e, err := m.Device.EventRecord(s)
	if err != nil && m.StreamSynchronize(s) == nil {
		return passedEvent, nil
	}
	return e, err
}

// EventQuery implements cuda.Device. During a capture no event passes: to ask would break it.
func (m *meter) EventQuery(e cuda.Event) (bool, error) {
	if m.capturing || e == passedEvent {
		return e == passedEvent, nil
	}
	return m.Device.EventQuery(e)
}

// EventSynchronize implements cuda.Device.
func (m *meter) EventSynchronize(e cuda.Event) error {
	switch {
	case e == passedEvent:
		return nil
	case m.capturing:
		return errCapturing
	}
	return m.Device.EventSynchronize(e)
}

// EventDestroy implements cuda.Device.
func (m *meter) EventDestroy(e cuda.Event) error {
	if e == passedEvent {
		return nil
	}
	return m.Device.EventDestroy(e)
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
	return m.Device.StreamSynchronize(s)
}
