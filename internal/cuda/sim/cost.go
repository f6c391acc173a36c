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
	Clear // not a call: the clearing of memory, for which MemAlloc and Create wait
	NumCalls
)

var callNames = [NumCalls]string{
	"cuMemAlloc", "cuMemFree", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease",
	"cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuEventRecord", "cuEventQuery",
	"cuStreamWaitEvent", "clearing",
}

// String returns the name of the driver's function.
func (c Call) String() string { return callNames[c] }

// callByName returns the call with a name.
func callByName(name string) (Call, bool) {
	i := slices.Index(callNames[:], name)
	return Call(i), i >= 0
}

// Point is the measured cost of a call for one size.
type Point struct {
	Bytes int64         `json:"bytes"`
	Cost  time.Duration `json:"ns"`
}

// Curve is a cost as a function of size: points of growing size, with linear interpolation between them. Below the first point the cost
// is that of the point; above the last, the last slope continues, limited to between 0 and a minute.
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

// maxCost exceeds the time of any call. It keeps sums within their range.
const maxCost = time.Minute

// CostTable holds the costs of the driver calls of one GPU. Those of Map, SetAccess and Unmap are per handle in their range. Those of
// MemAlloc, Create and the first SetAccess are for memory that is clear. Clearing has a curve of its own; an empty one means that it
// takes no time.
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
