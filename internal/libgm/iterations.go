package main

// #include "libgm.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"

	"gm/internal/blocks"
	"gm/internal/libgm/planner/client"
)

// iterations is the plan of a device whose program says where its iterations begin. It is used with the device's lock held.
type iterations struct {
	alloc    *blocks.Cyclic // nil before the first one
	planning bool
	failed   bool
	ending   bool // the plan is to be abandoned once no graph is captured
	round    int  // counts how often the program said that its iterations change
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
	if g.broken || n.failed {
		return -1
	}
	if n.ending {
		g.endIterations()
	}
	if n.ending {
		return C.GM_UNPLANNED
	}
	if n.alloc == nil {
		stitch, ok := g.alloc.(*blocks.Stitch)
		if !ok {
			return -1
		}
		n.alloc = blocks.OverStitch(stitch)
		g.alloc = n.alloc
	}
	if n.planning {
		return C.GM_PLANNING
	}
	iteration := n.alloc.Mark(recordedRequests)
	g.small.look()
	switch planned, begun := n.alloc.Planned(); {
	case begun:
		return C.GM_FOLLOWED
	case planned:
		return C.GM_PLANNING
	case len(iteration) == 0:
		return C.GM_RECORDED
	}
	n.planning = true
	go g.layOut(iteration, n.alloc.Room(iteration), n.round)
	return C.GM_PLANNING
}

// endIterations has each request served by itself.
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
	n.ending, _ = n.alloc.Planned()
	g.small.look()
	return C.GM_UNPLANNED
}

// layOut has an iteration laid out, beside the job, and followed unless the program has ended its iterations meanwhile.
func (g *gpu) layOut(iteration []blocks.Request, room int64, round int) {
	cycle, err := laidOut(self.settings.planner, iteration, room)
	runtime.LockOSThread() // the lock is a thread's
	defer runtime.UnlockOSThread()
	C.gm_lock(C.int(g.ordinal))
	defer C.gm_unlock(C.int(g.ordinal))
	defer guard(C.int(g.ordinal))
	n := &g.iterations
	n.planning = false
	if n.round != round || g.broken {
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

func laidOut(p client.Planner, iteration []blocks.Request, room int64) (cycle *blocks.Cycle, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: %v", r)
		}
	}()
	return p.LayoutSoon(context.Background(), iteration, room)
}
