package tuning

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"gm/internal/bench/remedy"
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// Outcome is how PyTorch's allocator performs with a setting.
type Outcome struct {
	Setting  Setting
	Peak     int64   // most bytes reserved, by the program that reserves most
	Peaks    []int64 // of each program
	Calls    int64   // of the driver on memory, all programs together
	DriverNS int64   // the time of all driver calls, all programs together
	Retries  int64   // times that the cache was emptied because the GPU was full
	OOMs     int     // programs that ran out of memory

	abandoned bool // it reserves too much to be of interest
}

// Job is a program and the memory that it runs in.
type Job struct {
	*replay.Program
	Room   remedy.Room
	Failed bool // the last request is one that failed when it was recorded
}

// Jobs returns the jobs that run on a GPU of capacity bytes; 0 is a GPU without limit.
func Jobs(programs []*replay.Program, capacity int64) []Job {
	all := make([]Job, len(programs))
	for i, p := range programs {
		all[i] = Job{Program: p, Room: remedy.Room{Bytes: capacity}}
	}
	return all
}

// trials replays jobs with settings, on all cores.
type trials struct {
	jobs  []Job
	costs sim.CostTable
	done  func()
}

// run replays all jobs with each setting. It abandons a replay that reserves more than limit bytes; 0 is no limit.
func (t *trials) run(ctx context.Context, settings []Setting, limit int64) ([]*Outcome, error) {
	if limit == 0 {
		limit = math.MaxInt64
	}
	n := len(t.jobs)
	results := make([]*replay.Result, n*len(settings))
	errs := make([]error, len(results))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				results[i], errs[i] = t.replay(ctx, t.jobs[i%n], settings[i/n], limit)
				if i%n == n-1 {
					t.done()
				}
			}
		})
	}
	for i := range results {
		next <- i
	}
	close(next)
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := make([]*Outcome, len(settings))
	for i, s := range settings {
		all[i] = sum(s, results[i*n:(i+1)*n])
	}
	return all, nil
}

// replay returns nil if the replay was abandoned.
func (t *trials) replay(ctx context.Context, j Job, s Setting, limit int64) (*replay.Result, error) {
	dev, torch, err := j.Room.Torch(s.Conf, t.costs)
	if err != nil {
		return nil, err
	}
	result, err := replay.Run(ctx, j.Program, &bounded{torch, limit}, dev)
	if errors.Is(err, errBeyond) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("setting %s: %w", s, err)
	}
	return result, nil
}

func sum(s Setting, results []*replay.Result) *Outcome {
	o := &Outcome{Setting: s}
	for _, r := range results {
		if r == nil {
			o.abandoned = true
			return o
		}
		o.Peak = max(o.Peak, r.Stats.PeakReserved)
		o.Peaks = append(o.Peaks, r.Stats.PeakReserved)
		o.Calls += r.Calls
		o.DriverNS += r.DriverTime.Nanoseconds()
		o.Retries += r.Stats.Retries
		if r.OOM != nil {
			o.OOMs++
		}
	}
	return o
}

// bounded is PyTorch's allocator until it reserves more than limit bytes. It does not take over the memory from before a recording, which
// was laid out with other settings. That memory is requested like any other.
type bounded struct {
	blocks.Allocator
	limit int64
}

var errBeyond = errors.New("reserves too much to be of interest")

// Malloc implements blocks.Allocator.
func (b *bounded) Malloc(size int64, stream cuda.Stream, pool blocks.Pool) (cuda.Ptr, error) {
	p, err := b.Allocator.Malloc(size, stream, pool)
	if err == nil && b.Stats().Reserved > b.limit {
		return p, errBeyond
	}
	return p, err
}
