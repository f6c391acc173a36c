package swap

import "time"

// Schedule says what is done with the tensors of a graph during a step.
type Schedule struct {
	Policy  string
	Actions []Action // by At; those at the same operator are carried out in their order
}

// Action is one step of a schedule.
type Action struct {
	Kind   Kind
	Tensor int32
	At     int32 // the operator right before which it is carried out
	Bytes  int64 // what Offload and Prefetch copy: the first bytes of the tensor. The rest is left for Recompute
}

// Kind is what an action does.
type Kind uint8

// The kinds of actions. What has not been offloaded when it is freed, and is not prefetched, has to be recomputed. Behind its last use a
// tensor is neither offloaded nor prefetched; it may be recomputed, for others, and freed.
const (
	// Offload begins a copy to the host, behind the work that the compute stream holds now and all copies to the host before it.
	Offload Kind = iota
	// Free gives the tensor's memory on the device back, once its copy to the host has ended: the compute stream waits for that.
	Free
	// Prefetch takes memory for the tensor on the device and begins the copy back, behind the work that the compute stream holds now
	// and all copies to the device before it. The first operator that uses the tensor, and Recompute of others from it, wait for the end of that copy.
	Prefetch
	// Await has the compute stream wait for the copy back now.
	Await
	// Recompute runs the tensor's operator again on the compute stream for what Prefetch did not bring back, taking memory for the
	// tensor if there was no Prefetch.
	Recompute
	// Settle has the compute stream wait for the copy to the host now, and keeps the tensor on the device: a barrier.
	Settle
)

// Copier says how long copies of a size in bytes take: a link between device and host.
type Copier interface {
	OutTime(bytes int64) time.Duration // to the host
	InTime(bytes int64) time.Duration  // to the device
}

// Limits are what a schedule has to keep to.
type Limits struct {
	Device int64 // bytes in use on the device, at any moment
	Host   int64 // bytes of host memory for copies
	Link   Copier
}
