package main

// #include "libgm.h"
import "C"

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"gm/formats/plan"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/plan/cyclic"
)

const (
	// recordedRequests is how many requests are recorded at the most before an iteration must have shown.
	recordedRequests = 1 << 18
	// planTime is how long a plan is improved that is not proven to be the best, and planThreads how many threads do.
	planTime    = 5 * time.Second
	planThreads = 2
)

// newStitch makes gm's own allocator, which follows a plan if one is asked for.
func (s *settings) newStitch(dev cuda.Device, ordinal int, log *logger) (blocks.Allocator, error) {
	switch {
	case s.plan != "":
		c, err := blocks.NewCyclic(dev, blocks.PlannedStitchConf())
		if err != nil {
			return nil, err
		}
		if err := adoptFile(c, s.plan, ordinal); err != nil {
			log.printf("GM_PLAN: %v; no plan is followed", err)
		}
		return c, nil
	case s.auto:
		c, err := blocks.NewCyclic(dev, blocks.PlannedStitchConf())
		if err != nil {
			return nil, err
		}
		c.Record(recordedRequests, func(iteration []blocks.Request) { go planIteration(c, iteration, ordinal, log) })
		return c, nil
	}
	return blocks.NewStitch(dev, blocks.DefaultStitchConf())
}

// adoptFile has an allocator follow the plan in a file.
func adoptFile(c *blocks.Cyclic, path string, ordinal int) error {
	r, err := plan.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	cycle, err := cyclic.Read(r, int32(ordinal))
	if err != nil {
		return err
	}
	return c.Adopt(cycle)
}

// adoptLocked has the allocator of a device follow a plan, between two requests.
func adoptLocked(c *blocks.Cyclic, cycle *blocks.Cycle, ordinal int) error {
	runtime.LockOSThread() // the lock is a thread's
	defer runtime.UnlockOSThread()
	C.gm_lock(C.int(ordinal))
	defer C.gm_unlock(C.int(ordinal))
	return c.Adopt(cycle)
}

// planIteration lays an iteration out, beside the job, and has the allocator of a device follow it.
func planIteration(c *blocks.Cyclic, iteration []blocks.Request, ordinal int, log *logger) {
	defer func() {
		if r := recover(); r != nil {
			log.printf("device %d: BUG: %v; no plan is followed\n%s", ordinal, r, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), planTime)
	defer cancel()
	begin := time.Now()
	cycle, err := cyclic.Solve(ctx, iteration, solvers.Auto(), dsa.Options{Workers: planThreads})
	if err == nil {
		err = adoptLocked(c, cycle, ordinal)
	}
	if err != nil {
		log.printf("device %d: an iteration of %d requests has no plan: %v", ordinal, len(iteration), err)
		return
	}
	var size int64
	for _, n := range cycle.Arenas {
		size += n
	}
	log.printf("device %d: iterations of %d requests, planned in %.1f GiB within %v", ordinal, len(iteration),
		float64(size)/(1<<30), time.Since(begin).Round(time.Millisecond))
}
