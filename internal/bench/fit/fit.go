// Package fit finds the smallest GPU on which a program runs with an allocator.
package fit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// Result is how much memory one allocator needs for one program.
type Result struct {
	Trace     string   `json:"trace"`
	Device    int32    `json:"device"`
	Allocator string   `json:"allocator"`
	Outside   int64    `json:"outside_bytes"`   // what the recorded process had of the GPU beside PyTorch at most; 0 if that was not recorded
	Requested int64    `json:"requested_bytes"` // the most that the program holds at a time: no capacity below this is enough
	Peak      int64    `json:"peak_bytes"`      // reserved on a device without limit; 0 if it runs out even there
	Least     int64    `json:"least_bytes"`     // the smallest capacity found on which it runs to the end; 0 if there is none
	Retries   int64    `json:"retries"`         // with that capacity: times that the cache was emptied because the device was full
	Replays   int      `json:"replays"`         // replays that the search took
	Cards     []OnCard `json:"cards"`
}

// OnCard is the result of a program on a card.
type OnCard struct {
	Card
	Fits    bool  `json:"fits"`
	Retries int64 `json:"retries"` // if it fits
}

// All searches for every program and allocator, on all cores, and returns the results program by program, in the order of specs. It calls
// done once for each, from any goroutine.
func All(ctx context.Context, programs []*replay.Program, specs []bench.Spec, costs sim.CostTable, done func()) ([]Result, error) {
	results := make([]Result, len(programs)*len(specs))
	errs := make([]error, len(results))
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			results[i], errs[i] = run(ctx, programs[i/len(specs)], specs[i%len(specs)], costs, room)
			done()
		})
	}
	all.Wait()
	return results, errors.Join(errs...)
}

// run searches for one program and allocator. Each replay takes a slot of room.
func run(ctx context.Context, p *replay.Program, spec bench.Spec, costs sim.CostTable, room chan struct{}) (Result, error) {
	r := Result{Trace: p.Name, Device: p.Device, Allocator: spec.Text, Outside: p.Outside, Requested: requested(p)}
	room <- struct{}{}
	prepared, err := spec.Prepare(ctx, p)
	<-room
	if err != nil {
		return r, fmt.Errorf("%s: allocator %s: %w", p.Name, spec.Text, err)
	}
	s := &search{try: func(capacity int64) (outcome, error) {
		room <- struct{}{}
		defer func() { <-room }()
		if err := ctx.Err(); err != nil {
			return outcome{}, err
		}
		return try(ctx, prepared, spec, sim.New(capacity, costs))
	}}
	err = s.fill(&r)
	return r, err
}

// requested returns the most bytes that a program holds at a time.
func requested(p *replay.Program) int64 {
	var now, most int64
	for i, kind := range p.Kinds {
		switch kind {
		case replay.Alloc:
			now += p.Sizes[p.Tensors[i]]
			most = max(most, now)
		case replay.Free, replay.Request:
			now -= p.Sizes[p.Tensors[i]]
		}
	}
	return most
}

// outcome is how a replay ended.
type outcome struct {
	fits    bool
	peak    int64 // bytes reserved
	retries int64
}

// try replays a program on a device.
func try(ctx context.Context, p *replay.Program, spec bench.Spec, dev *sim.Device) (outcome, error) {
	a, err := spec.Make(ctx, p, dev)
	if replay.NewOOM(err) != nil { // the arenas of a plan do not fit
		return outcome{}, nil
	}
	if err != nil {
		return outcome{}, fmt.Errorf("%s: allocator %s: %w", p.Name, spec.Text, err)
	}
	res, err := replay.Run(ctx, p, a, dev)
	if errors.Is(err, cuda.ErrOutOfMemory) { // the memory from before the recording does not fit
		return outcome{}, nil
	}
	if err != nil {
		return outcome{}, fmt.Errorf("allocator %s: %w", spec.Text, err)
	}
	return outcome{res.OOM == nil, res.Stats.PeakReserved, res.Stats.Retries}, nil
}
