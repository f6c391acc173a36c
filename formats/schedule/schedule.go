package schedule

import "fmt"

// Action is one row of a schedule.
type Action struct {
	Kind     Kind
	Tensor   int64 // of the graph
	Name     int32 // code of the tensor's name
	Operator int64 // of the graph, right before which it is carried out
	Bytes    int64 // that Offload and Prefetch copy
	Slot     int64 // offset in bytes of the copy's place in host memory; -1 when it has none
	Lane     Lane  // [Kind.Lane] of the kind
}

// Batch holds consecutive rows, one slice a column, all of one length, ordered by Operator.
type Batch struct {
	Kind     []Kind
	Tensor   []int64
	Name     []int32
	Operator []int64
	Bytes    []int64
	Slot     []int64
	Lane     []Lane
}

// Kind is what an action does.
type Kind int8

// The kinds of actions.
const (
	Offload   Kind = iota // begins a copy to the host
	Free                  // gives the tensor's memory on the device back, once its copy to the host has ended
	Prefetch              // takes memory on the device and begins the copy back
	Await                 // waits for the end of the copy back
	Recompute             // computes again what was not copied
	Settle                // waits for the end of the copy to the host and keeps the tensor
)

var kindNames = []string{"offload", "free", "prefetch", "await", "recompute", "settle"}

// String returns the kind's name, as files hold it.
func (k Kind) String() string { return nameOf("Kind", kindNames, int(k)) }

// Lane returns the lane in which actions of the kind do their work, or wait.
func (k Kind) Lane() Lane {
	switch k {
	case Offload:
		return Out
	case Prefetch:
		return In
	}
	return Compute
}

// Lane is a stream of the device.
type Lane int8

// The lanes.
const (
	Compute Lane = iota
	Out          // copies to the host
	In           // copies to the device
)

var laneNames = []string{"compute", "out", "in"}

// String returns the lane's name, as files hold it.
func (l Lane) String() string { return nameOf("Lane", laneNames, int(l)) }

func nameOf(typ string, names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", typ, i)
	}
	return names[i]
}

// Meta is what a schedule says of itself as a whole. But for the numbers of operators and tensors, zero values mean unknown.
type Meta struct {
	Digest       string // SHA-256 of the graph's file, in hex
	Graph        string // the graph's name
	Device       string // the product's name that the graph's durations hold for
	Operators    int64  // of the graph
	Tensors      int64  // of the graph
	Policy       string // which policy made it
	DeviceBudget int64  // bytes of device memory that it was to keep to
	HostBudget   int64  // bytes of host memory that it was to keep to
	Link         string // how long copies take, as JSON
	GPUs         int64  // of the host that copy at the same time; 0, as in files of version 1.0, is one

	// What a simulation of it came to.
	StepNS    int64 // nanoseconds of a step
	PlainNS   int64 // nanoseconds of a step in which nothing is moved
	Peak      int64 // bytes in use on the device at worst
	PlainPeak int64 // the same when nothing is moved
	HostPeak  int64 // bytes of host memory for copies: the end of the last place, or what is in use at worst when there are no places

	Alternatives string // the other schedules that were considered, and what they came to
}
