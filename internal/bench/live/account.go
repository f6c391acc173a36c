package live

import (
	"time"

	"gm/internal/cuda/sim"
)

// Call is a kind of driver call. The first kinds are those of sim.Call, with one difference: the first setting of access to memory counts
// as sim.Create. It waits for the memory to be cleared, and gmbench calibrate includes that time in the cost of cuMemCreate, too.
type Call int

// The calls beyond sim's have no cost in a table: they wait or query.
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

// Modelled reports whether a table has a cost for the call.
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

// MemoryCalls returns how many calls took, released, mapped or unmapped memory: all that have a modelled cost except those on events.
func (a *Account) MemoryCalls() (n int64) {
	for _, u := range a[:sim.EventRecord] {
		n += u.Calls
	}
	return n
}
