package main

import (
	"io"

	"gm/internal/bench/live"
	"gm/internal/cli"
)

// replayed is a run, as JSON.
type replayed struct {
	Trace         string         `json:"trace"`
	TraceDevice   int32          `json:"trace_device"` // that was recorded
	Device        string         `json:"device"`       // of the run
	Allocator     string         `json:"allocator"`
	Requests      int64          `json:"requests"`
	PeakAllocated int64          `json:"peak_allocated_bytes"`
	PeakReserved  int64          `json:"peak_reserved_bytes"`
	PeakInUse     int64          `json:"peak_in_use_bytes"` // as the driver counts it
	Left          int64          `json:"left_bytes"`        // still taken when all was freed and the cache emptied
	Utilisation   *float64       `json:"utilisation"`
	Retries       int64          `json:"retries"`
	DriverCalls   int64          `json:"driver_calls"`
	DriverNS      *int64         `json:"driver_ns"` // null on a simulated GPU
	ModelledNS    int64          `json:"modelled_ns"`
	Ratio         *float64       `json:"modelled_of_measured"`
	Malloc        latency        `json:"malloc"`
	Free          latency        `json:"free"`
	Calls         []calls        `json:"calls"`
	OOM           *failedRequest `json:"oom"`
	Check         *checked       `json:"check"` // null if nothing was written
}

type latency struct {
	Count     int      `json:"count"`
	P50       int64    `json:"p50_ns"`
	P99       int64    `json:"p99_ns"`
	P999      int64    `json:"p999_ns"`
	Max       int64    `json:"max_ns"`
	Histogram []bucket `json:"histogram,omitempty"`
}

type bucket struct {
	From  int64 `json:"from_ns"`
	Count int64 `json:"count"`
}

type calls struct {
	Call       string   `json:"call"`
	Calls      int64    `json:"calls"`
	MeasuredNS *int64   `json:"measured_ns"`
	ModelledNS *int64   `json:"modelled_ns"` // null if the call is not modelled
	Ratio      *float64 `json:"modelled_of_measured"`
}

type failedRequest struct {
	Row       int64 `json:"row"` // of the trace; -1 if the arenas of a plan did not fit
	Size      int64 `json:"requested_bytes"`
	Allocated int64 `json:"allocated_bytes"`
	Reserved  int64 `json:"reserved_bytes"`
}

type checked struct {
	Tensors int64 `json:"tensors"`
	Words   int64 `json:"words"`
	Wrong   int64 `json:"wrong"`
}

func writeReplays(w io.Writer, runs []liveRun, histogram bool) error {
	all := []replayed{}
	for i := range runs {
		all = append(all, runs[i].replayed(histogram))
	}
	return cli.WriteJSON(w, all)
}

func (r *liveRun) replayed(histogram bool) replayed {
	total := r.Account.Total()
	out := replayed{
		Trace: r.program.Name, TraceDevice: r.program.Device, Device: r.target.name, Allocator: r.alloc, Requests: r.requests(),
		PeakAllocated: r.Stats.PeakAllocated, PeakReserved: r.Stats.PeakReserved, PeakInUse: r.PeakInUse, Left: r.Left,
		Utilisation: optional(r.utilisation()), Retries: r.Stats.Retries, DriverCalls: r.Account.MemoryCalls(),
		DriverNS: r.measuredNS(total), ModelledNS: total.Modelled.Nanoseconds(), Ratio: optional(r.modelledShare(total)),
		Malloc: latencyOf(r.Malloc, histogram), Free: latencyOf(r.Free, histogram), Calls: []calls{},
	}
	for call, u := range r.Account {
		if u.Calls > 0 {
			modelled := optional(u.Modelled.Nanoseconds(), live.Call(call).Modelled())
			out.Calls = append(out.Calls, calls{
				live.Call(call).String(), u.Calls, r.measuredNS(u), modelled, optional(r.modelledShare(u)),
			})
		}
	}
	if o := r.OOM; o != nil {
		out.OOM = &failedRequest{o.Row, o.Size, o.Allocated, o.Reserved}
	}
	if r.options.Check != live.CheckNothing {
		out.Check = &checked{r.Checked.Tensors, r.Checked.Words, r.Checked.Wrong}
	}
	return out
}

func (r *liveRun) measuredNS(u live.Usage) *int64 {
	return optional(u.Measured.Nanoseconds(), !r.target.sim)
}

// optional returns null for what is not known.
func optional[T any](value T, known bool) *T {
	if !known {
		return nil
	}
	return &value
}

func latencyOf(l live.Latencies, histogram bool) latency {
	s := l.Summary()
	out := latency{
		Count: len(l), P50: s.P50.Nanoseconds(), P99: s.P99.Nanoseconds(), P999: s.P999.Nanoseconds(), Max: s.Max.Nanoseconds(),
	}
	if histogram {
		for _, b := range l.Histogram() {
			out.Histogram = append(out.Histogram, bucket{b.From.Nanoseconds(), b.Count})
		}
	}
	return out
}
