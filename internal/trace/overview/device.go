package overview

import (
	"cmp"
	"slices"

	"gm/formats/trace"
	"gm/internal/trace/iterations"
	"gm/internal/trace/recording"
)

// Device sums up the rows of one GPU. All fields but Driver are about the framework's allocator.
type Device struct {
	Ordinal      int32     `json:"device"`
	Allocs       int64     `json:"allocs"`
	Unfreed      int64     `json:"unfreed"`         // allocations that are live at the end
	PeakLive     int64     `json:"peak_live_bytes"` // as requested, until they are reusable
	PeakRow      int64     `json:"peak_row"`        // the first of the device if nothing ever lives
	PeakNS       int64     `json:"peak_ns"`
	PeakReserved int64     `json:"peak_reserved_bytes"` // bytes in segments; 0 if none were recorded
	OOMs         []OOM     `json:"ooms"`
	Streams      []*Stream `json:"streams"`
	Pools        []string  `json:"private_pools"`
	Largest      []Size    `json:"largest_sizes"` // the ten largest distinct sizes
	Iterations   []Span    `json:"iterations"`    // from 0, see [iterations.Sections]; those found are among the first [iterations.MaxRequests] allocations
	Marked       bool      `json:"iterations_by_marks"`
	Driver       *Driver   `json:"driver"` // nil if the trace has no rows of the driver's level
	IterationNS  int64     `json:"-"`      // median time of an iteration, from its first allocation to that of the next; 0 if there are none
	Requests     uint64    `json:"-"`      // digest of the framework's requests: equal if a plan of one trace fits the other

	curve    curve
	alike    digest
	live     int64
	reserved int64
	tensors  map[int64]tensor
	streams  map[int64]*Stream
	pools    map[int32]bool // by code
	requests requests
	ranges   recording.Ranges
	odd      *odd
}

// OOM is a request that failed when the trace was recorded.
type OOM struct {
	Row  int64 `json:"row"`
	Size int64 `json:"requested_bytes"`
	Free int64 `json:"device_free_bytes"`
}

// Stream sums up the allocations of one CUDA stream.
type Stream struct {
	Handle   int64 `json:"stream"`
	Allocs   int64 `json:"allocs"`
	PeakLive int64 `json:"peak_live_bytes"`

	live int64
}

// Size is a requested size.
type Size struct {
	Bytes int64 `json:"bytes"`
	Count int64 `json:"count"`
}

// Span is an iteration.
type Span = iterations.Section

type tensor struct {
	size   int64
	stream *Stream
}

// requests holds the allocations of a device in order, for the search for iterations.
type requests struct {
	sizes   []int64
	streams []int64
	live    []int64 // bytes that are live just before each
	rows    []int64
	times   []int64 // nanoseconds
	end     int64   // row of the first allocation that is not in it, 0 if all are
}

// add records an allocation with the bytes that are live just before it, unless noted, the count for all devices, has reached its limit.
func (r *requests) add(e *trace.Event, row, live int64, noted *int) {
	if r.end > 0 || len(r.sizes) == iterations.MaxRequests || *noted == iterations.MaxInAll {
		if r.end == 0 {
			r.end = row
		}
		return
	}
	*noted++
	r.sizes, r.streams = append(r.sizes, e.Size), append(r.streams, e.Stream)
	r.live, r.rows = append(r.live, live), append(r.rows, row)
	r.times = append(r.times, e.TimeNS)
}

// median returns the median time of iterations, from the first allocation of each to that of the next, or to the end; 0 if there are none.
func (r *requests) median(spans []Span, endNS int64) int64 {
	at := func(row int64) int64 {
		if i, _ := slices.BinarySearch(r.rows, row); i < len(r.times) {
			return r.times[i]
		}
		return endNS
	}
	var took []int64
	for _, s := range spans {
		took = append(took, at(s.End)-at(s.First))
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// sections returns the rows of iterations, in a trace with that many rows.
func (r *requests) sections(found []iterations.Span, rows int64) []Span {
	if r.end > 0 {
		rows = r.end
	}
	at := func(alloc int) int64 {
		if alloc < len(r.rows) {
			return r.rows[alloc]
		}
		return rows
	}
	all := []Span{}
	for _, s := range found {
		all = append(all, Span{First: at(s.Lo), End: at(s.Hi)})
	}
	return all
}

// maxLargest is how many of the largest sizes are kept.
const maxLargest = 10

// newDevice returns a device of a trace with that many rows.
func newDevice(ordinal int32, rows int64, odd *odd) *Device {
	return &Device{
		Ordinal: ordinal, OOMs: []OOM{}, Streams: []*Stream{}, Pools: []string{}, Largest: []Size{},
		tensors: map[int64]tensor{}, streams: map[int64]*Stream{}, pools: map[int32]bool{}, curve: newCurve(rows), odd: odd,
		alike: newDigest(),
	}
}

func (d *Device) stream(handle int64) *Stream {
	s := d.streams[handle]
	if s == nil {
		s = &Stream{Handle: handle}
		d.streams[handle] = s
		d.Streams = append(d.Streams, s)
		d.odd.listed++
	}
	return s
}

// add processes one row of the framework's level.
func (d *Device) add(e *trace.Event, row int64) {
	if d.curve.last < 0 {
		d.PeakRow, d.PeakNS = row, e.TimeNS
	}
	d.alike.add(e)
	switch e.Op {
	case trace.OpAlloc:
		d.alloc(e, row)
	case trace.OpFree, trace.OpFreeCompleted:
		if t, ok := d.tensors[e.ID]; ok {
			d.live -= t.size
			t.stream.live -= t.size
			delete(d.tensors, e.ID)
		}
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		d.reserved += e.Size
		d.PeakReserved = max(d.PeakReserved, d.reserved)
	case trace.OpSegmentFree, trace.OpSegmentUnmap:
		d.odd.takeBack(&d.reserved, e.Size, row, "segments")
	case trace.OpOOM:
		d.OOMs = append(d.OOMs, OOM{row, e.Size, int64(e.Addr)})
		d.odd.listed++
	}
	d.curve.add(row, e.TimeNS, d.live)
}

func (d *Device) alloc(e *trace.Event, row int64) {
	d.requests.add(e, row, d.live, &d.odd.noted)
	s := d.stream(e.Stream)
	d.tensors[e.ID] = tensor{e.Size, s}
	d.largest(e.Size)
	d.Allocs++
	s.Allocs++
	s.live += e.Size
	s.PeakLive = max(s.PeakLive, s.live)
	if d.live += e.Size; d.live > d.PeakLive {
		d.PeakLive, d.PeakRow, d.PeakNS = d.live, row, e.TimeNS
	}
}

// largest counts a size if it is among the largest so far.
func (d *Device) largest(size int64) {
	i, found := slices.BinarySearchFunc(d.Largest, size, func(s Size, size int64) int { return cmp.Compare(size, s.Bytes) })
	switch {
	case found:
		d.Largest[i].Count++
	case i < maxLargest:
		d.Largest = slices.Insert(d.Largest, i, Size{size, 1})
		d.Largest = d.Largest[:min(len(d.Largest), maxLargest)]
	}
}

// finish ends a trace with that many rows, the last of them at a time, in which iterations end at the marks in the given rows.
func (d *Device) finish(rows, endNS int64, ends []int64, shared *Shared) {
	if d.Driver != nil {
		d.Driver.finish(d.PeakReserved)
	}
	d.Unfreed = int64(len(d.tensors))
	slices.SortFunc(d.Streams, func(a, b *Stream) int {
		return cmp.Or(cmp.Compare(b.Allocs, a.Allocs), cmp.Compare(a.Handle, b.Handle))
	})
	d.Iterations, d.Marked = iterations.Sections(d.requests.sections(shared.find(&d.requests, d.alike.sum), rows), ends)
	d.IterationNS = d.requests.median(d.Iterations, endNS)
	d.Requests = d.alike.sum
	d.requests = requests{}
}

// Framework reports whether the trace has rows of a framework's allocator for the device.
func (d *Device) Framework() bool { return d.Allocs > 0 || d.PeakReserved > 0 || len(d.OOMs) > 0 }

// Curve returns the most bytes that were live in each of columns equal intervals of time.
func (d *Device) Curve(startNS, endNS int64, columns int) []float64 {
	return d.curve.columns(startNS, endNS, columns)
}
