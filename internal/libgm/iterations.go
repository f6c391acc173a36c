package main

// #include "libgm.h"
import "C"

import (
	"context"
	"runtime"

	"gm/internal/blocks"
)

// iterations is the plan of a device whose program says where its iterations begin. It is used with the device's lock held.
type iterations struct {
	alloc    *blocks.Cyclic // nil before the first one
	planning bool
	failed   bool
	round    int // counts the iterations that ended to be repeated
}

//export go_iteration
func go_iteration(device C.int, begins C.bool) (state C.int) {
	state = -1
	defer guard(device)
	g := self.gpu(device)
	if !begins {
		return g.endIterations()
	}
	return g.beginIteration()
}

func (g *gpu) beginIteration() C.int {
	n := &g.iterations
	if n.alloc == nil {
		stitch, ok := g.alloc.(*blocks.Stitch)
		if !ok {
			return -1
		}
		n.alloc = blocks.OverStitch(stitch)
		g.alloc = n.alloc
	}
	switch {
	case g.broken || n.failed:
		return -1
	case n.planning:
		return C.GM_PLANNING
	case n.alloc.Planned():
		return C.GM_FOLLOWED
	}
	iteration := n.alloc.Mark(recordedRequests)
	g.small.look()
	if len(iteration) == 0 {
		return C.GM_RECORDED
	}
	n.planning = true
	go g.layOut(iteration, n.round)
	return C.GM_PLANNING
}

// endIterations has each request served by itself. During a capture a plan stays.
func (g *gpu) endIterations() C.int {
	n := &g.iterations
	n.round++
	if n.alloc == nil || g.broken {
		return C.GM_UNPLANNED
	}
	n.alloc.StopRecording()
	if err := n.alloc.Abandon(); err != nil {
		g.complain("end a plan", err)
	}
	g.small.look()
	return C.GM_UNPLANNED
}

// layOut has an iteration laid out, beside the job, and followed unless iterations have ended to be repeated meanwhile.
func (g *gpu) layOut(iteration []blocks.Request, round int) {
	p := planning{ordinal: g.ordinal, planner: self.settings.planner, log: g.log}
	defer p.guard()
	cycle, err := p.planner.Layout(context.Background(), iteration)
	runtime.LockOSThread() // the lock is a thread's
	defer runtime.UnlockOSThread()
	C.gm_lock(C.int(g.ordinal))
	defer C.gm_unlock(C.int(g.ordinal))
	n := &g.iterations
	n.planning = false
	if n.round != round {
		return
	}
	if err == nil {
		err = n.alloc.Adopt(cycle)
	}
	if n.failed = err != nil; n.failed {
		g.log.printf("device %d: an iteration of %d requests has no plan: %v", g.ordinal, len(iteration), err)
	}
	g.small.look()
}
