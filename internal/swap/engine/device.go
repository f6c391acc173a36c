// Package engine moves memory of a GPU to pinned memory of the host and back, behind the back of the program: the order of streams is all
// that it waits by, and events are all that it orders them with. Nothing waits on the host.
package engine

import (
	"time"

	"gm/internal/cuda"
)

// Device is what the engine needs of a GPU; *driver.Device is one. Its methods are those of the CUDA driver API and mean what they mean
// there.
type Device interface {
	// StreamCreate makes a stream that waits for no other (cuStreamCreate, CU_STREAM_NON_BLOCKING).
	StreamCreate() (cuda.Stream, error)
	// StreamDestroy gives a stream up (cuStreamDestroy).
	StreamDestroy(s cuda.Stream) error
	// StreamSynchronize waits for all work in stream s (cuStreamSynchronize).
	StreamSynchronize(s cuda.Stream) error

	// HostRegister pins memory of the host (cuMemHostRegister).
	HostRegister(memory []byte) error
	// HostUnregister unpins what was registered as a whole (cuMemHostUnregister).
	HostUnregister(memory []byte) error

	// Transfer queues a copy, and returns an event behind it, and its time if it is timed. After an error nothing of it runs.
	Transfer(t cuda.Transfer) (done cuda.Event, took cuda.Interval, err error)
	// Follow makes the work that stream s gets from now on wait until e has passed. It fails if s is captured (cuStreamWaitEvent).
	Follow(s cuda.Stream, e cuda.Event) error
	// EventRecord returns a new event behind what stream s holds now (cuEventRecord).
	EventRecord(s cuda.Stream) (cuda.Event, error)
	// Synchronize waits for all work of the device's context (cuCtxSynchronize).
	Synchronize() error
	// Capturing says whether the work of stream s goes into a graph (cuStreamIsCapturing).
	Capturing(s cuda.Stream) (bool, error)
	// EventQuery says whether e has passed (cuEventQuery).
	EventQuery(e cuda.Event) (bool, error)
	// EventDestroy forgets e; waits on it that were queued remain (cuEventDestroy).
	EventDestroy(e cuda.Event) error
	// Elapsed returns the length of an interval, false while it has not passed (cuEventElapsedTime).
	Elapsed(i cuda.Interval) (time.Duration, bool, error)
	// IntervalDestroy forgets i.
	IntervalDestroy(i cuda.Interval)
}
