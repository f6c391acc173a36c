// Package failure says why a request for GPU memory failed, from the rows of a trace alone: where the memory was at that moment, and what
// refused the request.
package failure

import (
	"slices"

	"gm/formats/trace"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/overview"
)

// Failure is the last request on a device that failed, and the memory at that moment. Sizes are in bytes.
type Failure struct {
	Device int32  `json:"device"`
	Row    int64  `json:"row"`
	TimeNS int64  `json:"time_ns"`
	Size   int64  `json:"requested_bytes"`
	Free   int64  `json:"device_free_bytes"`
	By     string `json:"by"`     // the library that asked the driver; "" for a request of the framework's allocator
	Nth    int    `json:"nth"`    // it is the last of so many requests that failed on the device
	Later  int64  `json:"later"`  // requests of the framework that were met after it
	Stack  string `json:"stack"`  // folded, outermost frame first; "" if none was recorded
	Memory Memory `json:"memory"` // of the framework's allocator

	Capacity int64 `json:"capacity_bytes"` // of the device; 0 if unknown
	Obtained int64 `json:"obtained_bytes"` // that the process had from the driver; 0 if it was not recorded
	Refused  bool  `json:"refused"`        // the driver was seen to refuse it

	Verdict
}

// Memory is how an allocator's memory is used.
type Memory struct {
	Reserved int64 `json:"reserved_bytes"` // in its segments; 0 if they were not recorded
	Live     int64 `json:"live_bytes"`     // requested, and not freed
	Rounding int64 `json:"rounding_bytes"` // of these: sizes rounded up to 512
	Tails    int64 `json:"tails_bytes"`    // and what their blocks are larger than that
	Pending  int64 `json:"pending_bytes"`  // freed, but other streams may still use them
	Idle     Idle  `json:"idle"`           // in no block
	Largest  int64 `json:"largest_bytes"`  // the largest piece of Idle.Pieces
}

// Idle is memory of segments that is in no block, by why the request could not have it.
type Idle struct {
	Streams int64 `json:"other_streams_bytes"` // segments of other streams
	Pools   int64 `json:"other_pools_bytes"`   // segments of other pools, such as those of CUDA graphs
	Classes int64 `json:"other_sizes_bytes"`   // segments for small requests, if it is large, and the other way around
	Pieces  int64 `json:"pieces_bytes"`        // it could have it, but not in one piece
}

// Tensors returns the bytes of blocks that are live or wait for other streams, rounded up to 512.
func (m *Memory) Tensors() int64 { return m.Live + m.Rounding + m.Pending }

// All returns all idle bytes.
func (i *Idle) All() int64 { return i.Streams + i.Pools + i.Classes + i.Pieces }

// Read reads the trace whose overview is o once more, and returns one failure for each device that has one. Its
// memory grows with the live blocks and the segments.
func Read(r *trace.Reader, o *overview.Overview) ([]*Failure, error) {
	conf, _ := allocconf.Recorded(o.Meta.AllocConf)
	text := r.Strings().Text
	var all []*Failure
	states := map[int32]*state{}
	for _, d := range o.Devices {
		if f := last(d); f != nil {
			f.Capacity = o.Meta.Capacity
			all = append(all, f)
			states[d.Ordinal] = newState(f, d.Driver != nil, &conf, text)
		}
	}
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		s := states[e.Device]
		if s == nil {
			return nil
		}
		if e.Level == trace.LevelFramework && e.Op == trace.OpAlloc && row > s.failure.Row {
			s.failure.Later++
		}
		if row > s.failure.Row {
			return nil
		}
		s.add(e)
		if row == s.failure.Row {
			s.describe(e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, d := range o.Devices {
		if s := states[d.Ordinal]; s != nil {
			low, high := s.mayReserve(d.PeakReserved)
			s.failure.judge(&conf, s.reservedKnown(), low, high)
		}
	}
	return all, nil
}

// Any reports whether Read returns a failure for the trace with an overview.
func Any(o *overview.Overview) bool {
	return slices.ContainsFunc(o.Devices, func(d *overview.Device) bool { return last(d) != nil })
}

// last returns the last request on a device that failed, nil if none did. What the driver refused to PyTorch's allocator does not count: the
// allocator then tries again, or has a row of its own.
func last(d *overview.Device) *Failure {
	if n := len(d.OOMs); n > 0 {
		at := d.OOMs[n-1]
		return &Failure{Device: d.Ordinal, Row: at.Row, Size: at.Size, Free: at.Free, Nth: n}
	}
	if d.Driver == nil {
		return nil
	}
	var f *Failure
	n := 0
	for _, at := range d.Driver.Refusals {
		if at.By != overview.PyTorch {
			n++
			f = &Failure{Device: d.Ordinal, Row: at.Row, Size: at.Size, Free: at.Free, By: at.By, Nth: n}
		}
	}
	return f
}
