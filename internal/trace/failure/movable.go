package failure

import (
	"errors"

	"gm/formats/trace"
	"gm/internal/trace/tags"
)

// Movable is what could have waited on the host when a request failed, by the tags of a trace: activations that are saved for the backward
// pass, and states of the optimizer. Sizes are in bytes.
type Movable struct {
	Least       int64 `json:"least_bytes"`   // an estimate of what the device must hold up to and with the request, at most, if they wait on the host
	Without     int64 `json:"without_bytes"` // and if nothing waits there
	Activations int64 `json:"activations_bytes"`
	States      int64 `json:"optimizer_state_bytes"`
	Unknown     int64 `json:"unknown_bytes"`  // live tensors whose tag is unknown: they count as what stays
	Work        int64 `json:"operator_bytes"` // of the activations and states, when the request fails: what an operator may need of them
	Guess       bool  `json:"guess"`          // some of these tags are guesses
}

// Known reports whether the tags say enough: that there is something to move, and what most of the rest is.
func (m *Movable) Known(f *Failure) bool {
	return m.Activations+m.States > 0 && 2*m.Unknown <= f.Memory.Live
}

// worthwhile is the least share of the memory that must leave for the estimate to mean something.
const worthwhile = 0.05

// Helps reports whether enough leaves to count on it.
func (m *Movable) Helps() bool { return float64(m.Without-m.Least) >= worthwhile*float64(m.Without) }

// smallestState is the least size of states that gmswap moves, in bytes.
const smallestState = 1 << 20

// ReadMovable reads a trace up to the last of its failures, by device, with its tags. Its memory grows with the live tensors.
func ReadMovable(r *trace.Reader, all []*Failure, labels *tags.Tags) (map[int32]*Movable, error) {
	movers, end := map[int32]*mover{}, int64(-1)
	for _, f := range all {
		movers[f.Device] = &mover{failure: f, labels: labels, live: map[int64]tensor{}, found: &Movable{}}
		end = max(end, f.Row)
	}
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if row > end {
			return errDone
		}
		if m := movers[e.Device]; m != nil && row <= m.failure.Row {
			m.add(e, row)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDone) {
		return nil, err
	}
	found := map[int32]*Movable{}
	for device, m := range movers {
		found[device] = m.found
	}
	return found, nil
}

// Moment is what a trace holds after one of its rows, in bytes.
type Moment struct {
	TimeNS int64
	Live   int64
	Least  int64 // of these, what the device must hold if the rest waits on the host: an estimate
	Step   bool  // the row ends a step
}

// Follow reads a trace of one device to its end, with its tags, and calls at for each row that allocates, frees or ends a step.
func Follow(r *trace.Reader, labels *tags.Tags, at func(m Moment)) error {
	m := &mover{failure: &Failure{Row: r.Rows()}, labels: labels, live: map[int64]tensor{}, found: &Movable{}}
	return trace.Each(r, func(row int64, e *trace.Event) error {
		m.add(e, row)
		switch e.Op {
		case trace.OpAlloc, trace.OpFree, trace.OpFreeCompleted, trace.OpMark:
			at(Moment{e.TimeNS, m.bytes, m.stays + m.work(), e.Op == trace.OpMark})
		}
		return nil
	})
}

var errDone = errors.New("the last failure is read")

// mover follows the tensors of a device up to its failure.
type mover struct {
	failure *Failure
	labels  *tags.Tags
	live    map[int64]tensor // by id
	bytes   int64            // live
	stays   int64            // live bytes that cannot wait on the host
	largest [2]int64         // of the activations so far
	found   *Movable
}

// tensor is an allocation.
type tensor struct {
	size  int64
	label tags.Label
}

// movable reports whether gmswap moves tensors such as this one.
func (t tensor) movable() bool {
	return t.label.Tag == tags.Activations || t.label.Tag == tags.Optimizer && t.size >= smallestState
}

// add processes a row.
func (m *mover) add(e *trace.Event, row int64) {
	switch {
	case row == m.failure.Row:
		m.describe(e.Size)
	case e.Level != trace.LevelFramework:
	case e.Op == trace.OpAlloc:
		t := tensor{e.Size, m.labels.Of(e.ID)}
		m.live[e.ID] = t
		m.bytes += t.size
		if !t.movable() {
			m.stays += t.size
		} else if t.label.Tag == tags.Activations {
			m.largest[1] = max(m.largest[1], min(m.largest[0], t.size))
			m.largest[0] = max(m.largest[0], t.size)
		}
		m.found.Without = max(m.found.Without, m.bytes)
		m.found.Least = max(m.found.Least, m.stays+m.work())
	case e.Op == trace.OpFree, e.Op == trace.OpFreeCompleted:
		t := m.live[e.ID]
		m.bytes -= t.size
		if !t.movable() {
			m.stays -= t.size
		}
		delete(m.live, e.ID)
	}
}

// work returns what must be there of the tensors that could wait on the host. An operator needs at least what it reads and what it writes:
// the two largest activations stand for that, as far as so much lives.
func (m *mover) work() int64 { return min(m.largest[0]+m.largest[1], m.bytes-m.stays) }

// describe adds up what lives when a request of so many bytes fails.
func (m *mover) describe(requested int64) {
	f := m.found
	f.Work = m.work()
	f.Without = max(f.Without, m.bytes+requested)
	f.Least = max(f.Least, m.stays+requested+f.Work)
	for _, t := range m.live {
		switch {
		case t.label.Tag == tags.Unknown:
			f.Unknown += t.size
		case !t.movable():
			continue
		case t.label.Tag == tags.Activations:
			f.Activations += t.size
		default:
			f.States += t.size
		}
		f.Guess = f.Guess || t.label.Certainty == tags.Guessed
	}
}
