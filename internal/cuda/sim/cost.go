package sim

import (
	"slices"
	"time"

	"gm/internal/cuda/cards"
)

// Call is a kind of driver call.
type Call int

// The driver calls that a simulated device counts and charges for.
const (
	MemAlloc Call = iota
	MemFree
	AddressReserve
	AddressFree
	Create
	Release
	Map
	SetAccess
	Unmap
	EventRecord
	EventQuery
	StreamWaitEvent
	Clear // no call, but what MemAlloc and Create wait for: Clearing
	NumCalls
)

var callNames = [NumCalls]string{
	"cuMemAlloc", "cuMemFree", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease",
	"cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuEventRecord", "cuEventQuery",
	"cuStreamWaitEvent", "clearing",
}

// String returns the name of the driver's function.
func (c Call) String() string { return callNames[c] }

// callByName returns the call of that name.
func callByName(name string) (Call, bool) {
	i := slices.Index(callNames[:], name)
	return Call(i), i >= 0
}

// Point is the measured cost of a call for one size.
type Point struct {
	Bytes int64         `json:"bytes"`
	Cost  time.Duration `json:"ns"`
}

// Curve is a cost by size, as points of growing size. Between two points it is a straight line; outside, it is the nearest point's cost
// below and the last slope above, at least 0 and at most a minute.
type Curve []Point

// At returns the cost of a call of size bytes.
func (c Curve) At(size int64) time.Duration {
	if len(c) == 0 {
		return 0
	}
	if len(c) == 1 || size <= c[0].Bytes {
		return c[0].Cost
	}
	i := 1
	for i < len(c)-1 && size > c[i].Bytes {
		i++
	}
	a, b := c[i-1], c[i]
	slope := float64(b.Cost-a.Cost) / float64(b.Bytes-a.Bytes)
	return time.Duration(min(max(0, float64(a.Cost)+slope*float64(size-a.Bytes)), float64(maxCost)))
}

// maxCost is more than any call takes. It keeps sums within their range.
const maxCost = time.Minute

// CostTable is what the driver calls of one GPU cost. Map, SetAccess and Unmap cost this much for each handle in their range. MemAlloc and
// Create, and the first SetAccess, are for memory that is clear; how long clearing takes is a curve of its own, and none if it is empty.
type CostTable [NumCalls]Curve

// H200 is the cost table of an NVIDIA H200.
func H200() (t CostTable) {
	measured := cards.H200().Calls
	for call := range t {
		for _, p := range measured[Call(call).String()] {
			t[call] = append(t[call], Point(p))
		}
	}
	return t
}
