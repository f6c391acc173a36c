package schedule

import "fmt"

// Action is one row of a schedule.
type Action struct {
	Kind     Kind
	Tensor   int64 // of the graph
	Name     int32 // code of the tensor's name
	Operator int64 // of the graph, right before which the action is carried out
	Bytes    int64 // that Offload and Prefetch copy
	Slot     int64 // offset in bytes of the copy's place in host memory; -1 when it has none
	Lane     Lane  // [Kind.Lane] of the kind
}

// Batch holds consecutive rows, one slice per column, all of the same length, ordered by Operator.
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
	Free                  // frees the tensor's memory on the device, once its copy to the host has ended
	Prefetch              // allocates memory on the device and begins the copy back
	Await                 // waits for the end of the copy back
	Recompute             // recomputes a tensor that was not copied
	Settle                // waits for the end of the copy to the host and keeps the tensor
)

var kindNames = []string{"offload", "free", "prefetch", "await", "recompute", "settle"}

// String returns the kind's name in files.
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

// String returns the lane's name in files.
func (l Lane) String() string { return nameOf("Lane", laneNames, int(l)) }

func nameOf(typ string, names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", typ, i)
	}
	return names[i]
}

// Meta describes a schedule as a whole. Zero values mean unknown, except for the numbers of operators and tensors.
type Meta struct {
	Digest       string // SHA-256 of the graph's file, in hex
	Graph        string // the graph's name
	Device       string // product name of the GPU that the graph's durations apply to
	Operators    int64  // of the graph
	Tensors      int64  // of the graph
	Policy       string // the policy that made it
	DeviceBudget int64  // bytes of device memory that it was allowed
	HostBudget   int64  // bytes of host memory that it was allowed
	Link         string // how long copies take, as JSON
	GPUs         int64  // number of GPUs of the host that copy at the same time; 0, as in files of version 1.0, means one

	// The results of a simulation of it.
	StepNS    int64 // nanoseconds per step
	PlainNS   int64 // nanoseconds per step in which nothing is moved
	Peak      int64 // bytes in use on the device at the peak
	PlainPeak int64 // the same when nothing is moved
	HostPeak  int64 // bytes of host memory for copies: the end of the last place or, without places, the bytes in use at the peak

	Alternatives string // the other schedules that were considered, and their results
}
