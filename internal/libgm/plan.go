package main

// #include "libgm.h"
import "C"

import (
	"context"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/libgm/planner/client"
)

const (
	// recordedRequests is the most requests that are recorded while no iteration has been found.
	recordedRequests = 1 << 18
	// planWait is how long the first use of a device waits for the plan of a file. One that comes later is followed from then on.
	planWait = 2 * time.Second
)

// newStitch makes gm's own allocator, which follows a plan if the settings name one.
func (s *settings) newStitch(dev cuda.Device, ordinal int, log *logger) (blocks.Allocator, error) {
	if s.plan == "" && !s.auto {
		return blocks.NewStitch(dev, blocks.DefaultStitchConf())
	}
	c, err := blocks.NewCyclic(dev, blocks.PlannedStitchConf())
	if err != nil {
		return nil, err
	}
	p := planning{c, ordinal, s.planner, log}
	if s.plan != "" {
		p.followFile(s.plan)
	} else {
		c.Record(recordedRequests, func(iteration []blocks.Request) { go p.followIteration(iteration) })
	}
	return c, nil
}

// planning has the allocator of a device follow a plan that another process makes. The job goes on meanwhile, and without a plan where
// there is none.
type planning struct {
	alloc   *blocks.Cyclic
	ordinal int
	planner client.Planner
	log     *logger
}

// followFile has the allocator follow the plan in a file.
func (p planning) followFile(name string) {
	read := make(chan func(adopt func(*blocks.Cycle) error), 1)
	go func() {
		defer p.guard()
		cycle, err := p.requestFile(name)
		read <- func(adopt func(*blocks.Cycle) error) {
			if err == nil {
				err = adopt(cycle)
			}
			if err != nil {
				p.log.printf("GM_PLAN=%s: %v; no plan is followed", name, err)
			}
		}
	}()
	select {
	case follow := <-read:
		follow(p.alloc.Adopt)
	case <-time.After(planWait):
		p.log.printf("GM_PLAN=%s: the plan takes longer than %v; until it is there requests are served without it", name, planWait)
		go func() {
			defer p.guard()
			(<-read)(p.adoptLocked)
		}()
	}
}

func (p planning) requestFile(name string) (*blocks.Cycle, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	return p.planner.File(context.Background(), name, int32(p.ordinal))
}

// guard is deferred by what runs beside the job.
func (p planning) guard() {
	if r := recover(); r != nil {
		p.log.printf("device %d: BUG: %v; no plan is followed\n%s", p.ordinal, r, debug.Stack())
	}
}

// adoptLocked has the allocator follow a plan, between two requests.
func (p planning) adoptLocked(cycle *blocks.Cycle) error {
	runtime.LockOSThread() // the lock is a thread's
	defer runtime.UnlockOSThread()
	C.gm_lock(C.int(p.ordinal))
	defer C.gm_unlock(C.int(p.ordinal))
	return p.alloc.Adopt(cycle)
}

// followIteration has an iteration laid out, beside the job, and the allocator follow that.
func (p planning) followIteration(iteration []blocks.Request) {
	defer p.guard()
	begin := time.Now()
	cycle, err := p.planner.Layout(context.Background(), iteration)
	if err == nil {
		err = p.adoptLocked(cycle)
	}
	if err != nil {
		p.log.printf("device %d: an iteration of %d requests has no plan: %v", p.ordinal, len(iteration), err)
		return
	}
	var size int64
	for _, n := range cycle.Arenas {
		size += n
	}
	p.log.printf("device %d: iterations of %d requests, planned in %.1f GiB within %v", p.ordinal, len(iteration),
		float64(size)/(1<<30), time.Since(begin).Round(time.Millisecond))
}
