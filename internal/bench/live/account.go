package live

import (
	"time"

	"gm/internal/cuda/sim"
)

// Call is a kind of driver call. The first are those of sim.Call, but that access which is set for the first time is counted with
// sim.Create: it waits for memory to be cleared, and the costs of gmbench calibrate have what it takes longer with cuMemCreate, too.
type Call int

// The calls beyond sim's have no cost in a table: they wait, or ask.
const (
	EventSynchronize Call = Call(sim.NumCalls) + iota
	StreamSynchronize
	MemInfo
	NumCalls
)

// String returns the name of the driver's function.
func (c Call) String() string {
	switch c {
	case Call(sim.Create):
		return "cuMemCreate, first access"
	case EventSynchronize:
		return "cuEventSynchronize"
	case StreamSynchronize:
		return "cuStreamSynchronize"
	case MemInfo:
		return "cuMemGetInfo"
	}
	return sim.Call(c).String()
}

// Modelled says whether a table has a cost for the call.
func (c Call) Modelled() bool { return c < Call(sim.NumCalls) }

// Usage is how much a kind of call was used.
type Usage struct {
	Calls    int64 // a call over a range counts once for each physical handle in it
	Measured time.Duration
	Modelled time.Duration // by a cost table
}

// Account is the driver calls of a run.
type Account [NumCalls]Usage

// Total returns the sum over the calls that have a modelled cost.
func (a *Account) Total() (sum Usage) {
	for _, u := range a[:sim.NumCalls] {
		sum.Calls += u.Calls
		sum.Measured += u.Measured
		sum.Modelled += u.Modelled
	}
	return sum
}

// MemoryCalls returns how many calls took, gave back, mapped or unmapped memory: all that have a modelled cost but those on events.
func (a *Account) MemoryCalls() (n int64) {
	for _, u := range a[:sim.EventRecord] {
		n += u.Calls
	}
	return n
}
