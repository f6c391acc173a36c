package cuda

import "errors"

// ErrCapturing means that a stream is being captured into a CUDA graph, so that the requested work cannot be queued in it.
var ErrCapturing = errors.New("the stream is captured into a CUDA graph")

// Transfer is a copy between device memory and pinned host memory. It runs in a stream of its own. Events alone order it with other
// streams, so that no host thread waits for it.
type Transfer struct {
	Lane   Stream // in which the copy runs
	After  Stream // the copy waits for the work now queued in this stream
	Wait   Event  // and for this event; 0 is none
	In     bool   // from the host to the device
	Timed  bool   // the copy is timed
	Device Ptr
	Host   []byte // host side of the copy, outside of Go's heap

	// If Host was registered in pieces of Piece bytes, the first piece ends First bytes after the start of Host. The copy is then split, so
	// that each part is within one piece. Both are 0 if Host was registered as a whole.
	First, Piece int64
}

// Interval is the time between two points of a stream; the zero Interval is none.
type Interval struct{ Begin, End Event }
