package cuda

import "errors"

// ErrCapturing means that a stream is captured into a CUDA graph, so that what was asked for cannot be put into it.
var ErrCapturing = errors.New("the stream is captured into a CUDA graph")

// Transfer is a copy between device memory and pinned memory of the host. It runs in a stream of its own, which events alone keep in
// order with others, so that nobody waits for it on the host.
type Transfer struct {
	Lane   Stream // that copies
	After  Stream // the copy comes behind the work that this stream holds now
	Wait   Event  // and behind this event; 0 is none
	In     bool   // from the host to the device
	Timed  bool   // the copy is to be timed
	Device Ptr
	Host   []byte // what is copied, outside of Go's heap

	// Where Host was registered in pieces of Piece bytes, the first of them ends First bytes behind the start of Host: what the driver
	// copies at a time keeps within one. Both are 0 where it was registered as one.
	First, Piece int64
}

// Interval is the time between two points of a stream; the zero Interval is none.
type Interval struct{ Begin, End Event }
