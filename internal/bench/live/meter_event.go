package live

import (
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// hold makes the events that are recorded during f pass only after let of the same tensor: until then a job would still use it.
func (m *meter) hold(tensor int32, f func() error) error {
	m.holding = tensor
	err := f()
	m.holding = noTensor
	return err
}

// let ends the hold for a tensor.
func (m *meter) let(tensor int32) {
	for _, e := range m.holds[tensor] {
		if m.held[e] == tensor { // and not a newer one with the same handle
			delete(m.held, e)
		}
	}
	delete(m.holds, tensor)
}

// letAll ends all holds.
func (m *meter) letAll() {
	clear(m.held)
	clear(m.holds)
}

// EventRecord implements cuda.Device.
func (m *meter) EventRecord(s cuda.Stream) (cuda.Event, error) {
	begin := time.Now()
	e, err := m.Device.EventRecord(s)
	m.count(Call(sim.EventRecord), time.Since(begin), 1, m.cost(sim.EventRecord, 0))
	if err == nil && m.holding != noTensor {
		m.held[e] = m.holding
		m.holds[m.holding] = append(m.holds[m.holding], e)
	}
	return e, err
}

// EventQuery implements cuda.Device.
func (m *meter) EventQuery(e cuda.Event) (bool, error) {
	begin := time.Now()
	passed, err := m.Device.EventQuery(e)
	m.count(Call(sim.EventQuery), time.Since(begin), 1, m.cost(sim.EventQuery, 0))
	_, held := m.held[e]
	return passed && !held, err
}

// EventSynchronize implements cuda.Device. It ends a hold, because the job would wait.
func (m *meter) EventSynchronize(e cuda.Event) error {
	begin := time.Now()
	err := m.Device.EventSynchronize(e)
	m.count(EventSynchronize, time.Since(begin), 1, 0)
	delete(m.held, e)
	return err
}

// EventDestroy implements cuda.Device.
func (m *meter) EventDestroy(e cuda.Event) error {
	delete(m.held, e)
	return m.Device.EventDestroy(e)
}

// StreamWaitEvent implements cuda.Device.
func (m *meter) StreamWaitEvent(s cuda.Stream, e cuda.Event) error {
	begin := time.Now()
	err := m.Device.StreamWaitEvent(s, e)
	m.count(Call(sim.StreamWaitEvent), time.Since(begin), 1, m.cost(sim.StreamWaitEvent, 0))
	return err
}

// StreamSynchronize implements cuda.Device.
func (m *meter) StreamSynchronize(s cuda.Stream) error {
	begin := time.Now()
	err := m.Device.StreamSynchronize(s)
	m.count(StreamSynchronize, time.Since(begin), 1, 0)
	return err
}
