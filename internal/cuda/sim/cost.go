package sim

import (
	"slices"
	"time"
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

// H200 is the cost table measured on an NVIDIA H200 with driver 580.159 and CUDA 13.0 (docs/figures.md).
// Where a range of figures was seen the middle is taken.
func H200() CostTable {
	const mib = 1 << 20
	us := func(x float64) time.Duration { return time.Duration(x * float64(time.Microsecond)) }
	return CostTable{
		MemAlloc:        {{2 * mib, us(37)}, {128 * mib, us(43)}, {1024 * mib, us(87)}, {2048 * mib, us(108)}},
		MemFree:         {{2 * mib, us(27)}, {128 * mib, us(65)}, {1024 * mib, us(281)}, {2048 * mib, us(560)}},
		AddressReserve:  {{2 * mib, us(1.1)}, {128 * mib, us(2.3)}, {2048 * mib, us(3.1)}, {8192 * mib, us(10.8)}, {64 << 40, us(20)}},
		AddressFree:     {{2 * mib, us(0.9)}, {128 * mib, us(1.9)}, {2048 * mib, us(2.6)}, {8192 * mib, us(7.1)}, {64 << 40, us(20)}},
		Create:          {{2 * mib, us(7.5)}, {512 * mib, us(11)}},
		Release:         {{2 * mib, us(12)}, {128 * mib, us(57)}, {512 * mib, us(200)}, {2048 * mib, us(620)}},
		Map:             {{2 * mib, us(5.4)}, {128 * mib, us(5.9)}, {2048 * mib, us(8)}},
		SetAccess:       {{2 * mib, us(23.5)}, {32 * mib, us(26)}, {128 * mib, us(30)}, {512 * mib, us(60)}},
		Unmap:           {{2 * mib, us(18)}, {128 * mib, us(22)}, {2048 * mib, us(43)}},
		EventRecord:     {{0, us(0.24)}},
		EventQuery:      {{0, us(1.3)}},
		StreamWaitEvent: {{0, us(0.2)}},
		Clear:           {{2 * mib, us(4.6)}, {32 * mib, us(71)}, {128 * mib, us(320)}, {512 * mib, us(1200)}, {2048 * mib, us(2800)}},
	}
}
