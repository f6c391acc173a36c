package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// Row is the result of one allocator on one program.
type Row struct {
	Trace         string   `json:"trace"`
	Device        int32    `json:"device"`
	Allocator     string   `json:"allocator"`
	PeakAllocated int64    `json:"peak_allocated_bytes"` // in blocks handed out
	PeakReserved  int64    `json:"peak_reserved_bytes"`  // taken from the device
	Utilisation   float64  `json:"utilisation"`          // peak allocated / peak reserved
	Fragmentation float64  `json:"fragmentation"`        // 1 - utilisation
	Reduction     *float64 `json:"mem_reduction_ratio"`  // of the peak reserved, against torch on the same program; null unless both ran to the end
	DriverCalls   int64    `json:"driver_calls"`         // on memory, one for each handle of a range
	DriverNS      int64    `json:"driver_ns"`            // the time that all driver calls would take
	DriverShare   float64  `json:"driver_share"`         // DriverNS as a share of the time from the first row of the trace to the last
	Retries       int64    `json:"retries"`              // times that the cache was emptied because the device was full
	OOM           *OOM     `json:"oom"`                  // null if all requests were met

	Bound bool `json:"-"` // other allocators are compared with this one: see blocks.Entry

	curve    replay.Curve
	baseline int64 // peak reserved of torch, 0 unless both ran to the end and reserved something
}

// OOM is the request at which a program ran out of memory.
type OOM struct {
	Row       int64 `json:"row"` // of the trace; -1 if the program could not begin, because the arenas of a plan did not fit
	TimeNS    int64 `json:"time_ns"`
	Size      int64 `json:"requested_bytes"`
	Allocated int64 `json:"allocated_bytes"`
	Reserved  int64 `json:"reserved_bytes"`
}

// Curve returns memory over time.
func (r *Row) Curve() replay.Curve { return r.curve }

// baseline is the allocator that reductions are measured against: PyTorch's caching allocator without expandable_segments, with its other
// settings as recorded.
const baseline = "torch"

// GPU is the simulated device that programs are replayed on.
type GPU struct {
	Capacity int64 // bytes, 0 for sim.Endless
	Costs    sim.CostTable
}

// Compare is CompareOn a GPU of capacity bytes with the costs of an H200.
func Compare(ctx context.Context, programs []*replay.Program, specs []Spec, capacity int64, done func()) ([]Row, error) {
	return CompareOn(ctx, programs, specs, GPU{capacity, sim.H200()}, done)
}

// CompareOn replays every program through every allocator, on all cores. Each replay has a GPU of its own. It returns the rows program by
// program, in the order of specs, and calls done once for each row, from any goroutine.
func CompareOn(ctx context.Context, programs []*replay.Program, specs []Spec, gpu GPU, done func()) ([]Row, error) {
	unwatched := func(int, int, blocks.Allocator) replay.Watch { return func(int, cuda.Ptr) {} }
	return CompareWatched(ctx, programs, specs, gpu, unwatched, done)
}

// Watcher returns a watch for the replay of a program through the allocator of a spec, both given by number. It is called from any
// goroutine.
type Watcher func(program, spec int, a blocks.Allocator) replay.Watch

// CompareWatched is [CompareOn] with watches.
func CompareWatched(ctx context.Context, programs []*replay.Program, specs []Spec, gpu GPU, watcher Watcher, done func()) ([]Row, error) {
	base := slices.IndexFunc(specs, func(s Spec) bool { return s.Text == baseline })
	all := specs
	if base < 0 {
		base = len(specs)
		torch, err := ParseSpecs(baseline)
		if err != nil {
			return nil, err
		}
		all = append(slices.Clip(specs), torch...)
	}
	watched := func(program, spec int, a blocks.Allocator) replay.Watch {
		if spec < len(specs) {
			return watcher(program, spec, a)
		}
		return func(int, cuda.Ptr) {}
	}
	rows, err := runAll(ctx, programs, all, gpu, watched, func(spec int) {
		if spec < len(specs) {
			done()
		}
	})
	if err != nil {
		return nil, err
	}
	var out []Row
	for ; len(rows) > 0; rows = rows[len(all):] {
		for i := range specs {
			rows[i].compare(&rows[base])
		}
		out = append(out, rows[:len(specs)]...)
	}
	return out, nil
}

// runAll replays every program through every allocator and returns the rows in that order. It calls done with the number of the
// spec after each.
func runAll(ctx context.Context, programs []*replay.Program, specs []Spec, gpu GPU, watcher Watcher, done func(spec int)) ([]Row, error) {
	rows := make([]Row, len(programs)*len(specs))
	errs := make([]error, len(rows))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				program, spec := i/len(specs), i%len(specs)
				watch := func(a blocks.Allocator) replay.Watch { return watcher(program, spec, a) }
				rows[i], errs[i] = run(ctx, programs[program], specs[spec], gpu, watch)
				done(spec)
			}
		})
	}
	for i := range rows {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// compare fills in the MemReductionRatio of the GMLake paper, section 5.1.
func (r *Row) compare(base *Row) {
	if r.OOM == nil && base.OOM == nil && base.PeakReserved > 0 && r.PeakReserved > 0 {
		r.baseline = base.PeakReserved
		ratio := float64(base.PeakReserved-r.PeakReserved) / float64(base.PeakReserved)
		r.Reduction = &ratio
	}
}

// run replays one program through one allocator.
func run(ctx context.Context, p *replay.Program, spec Spec, gpu GPU, watch func(blocks.Allocator) replay.Watch) (Row, error) {
	row := Row{Trace: p.Name, Device: p.Device, Allocator: spec.Text, Bound: spec.Bound}
	dev := sim.New(gpu.Capacity, gpu.Costs)
	a, err := spec.Make(ctx, p, dev)
	if row.OOM = (*OOM)(replay.NewOOM(err)); row.OOM != nil { // the arenas of a plan do not fit
		return row, nil
	}
	if err != nil {
		return row, fmt.Errorf("%s: allocator %s: %w", p.Name, spec.Text, err)
	}
	res, err := replay.RunWatched(ctx, p, a, dev, watch(a))
	if err != nil {
		return row, fmt.Errorf("allocator %s: %w", spec.Text, err)
	}
	row.fill(p, res)
	return row, nil
}

func (r *Row) fill(p *replay.Program, res *replay.Result) {
	r.PeakAllocated, r.PeakReserved = res.Stats.PeakAllocated, res.Stats.PeakReserved
	if r.PeakReserved > 0 {
		r.Utilisation = float64(r.PeakAllocated) / float64(r.PeakReserved)
	}
	r.Fragmentation = 1 - r.Utilisation
	r.DriverCalls, r.DriverNS, r.Retries = res.Calls, res.DriverTime.Nanoseconds(), res.Stats.Retries
	if d := p.DurationNS(); d > 0 {
		r.DriverShare = float64(r.DriverNS) / float64(d)
	}
	r.OOM = (*OOM)(res.OOM)
	r.curve = res.Curve
}
