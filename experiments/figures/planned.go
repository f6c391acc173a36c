package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"gm/formats/plan"
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/plan/cyclic"
)

// A job of fixed shapes that follows a plan may take so much more than its lower bound, the most bytes in use, and calls neither the
// driver nor searches once it does.
const (
	plannedExcess = 0.01
	plannedTimes  = 10 // its last iteration is repeated so often, as recordings are short
	plannedAfter  = 8  // iterations
	autoRequests  = 1 << 18
	autoTime      = 2 * time.Second
)

// measurePlanned has jobs of fixed shapes follow the plan of one iteration, that of gmplan, or by themselves once they repeat it.
func measurePlanned(e *experiment) error {
	programs, err := e.programs("")
	if err != nil {
		return err
	}
	for _, p := range programs {
		r := requestsOf(p)
		if !r.fixed() {
			continue
		}
		if p, err = p.Repeat(r.spans[silentAfter].Lo, r.spans[silentAfter].Hi, plannedTimes); err != nil {
			return err
		}
		if err := e.follow(p, r, "planned", func(c *blocks.Cyclic) error { return e.adopt(c, p) }); err != nil {
			return err
		}
		if err := e.follow(p, r, "auto", auto); err != nil {
			return err
		}
	}
	return nil
}

// adopt gives c the plan that gmplan makes of one iteration.
func (e *experiment) adopt(c *blocks.Cyclic, p *replay.Program) error {
	file := filepath.Join(e.dir, p.Name+".cycle.parquet")
	cmd := exec.Command("bin/gmplan", "--iteration", "auto", "--periodic", "--streams", "separate", filepath.Join(e.dir, p.Name+".parquet"), "-o", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	r, err := plan.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	cycle, err := cyclic.Read(r, p.Device)
	if err != nil {
		return err
	}
	return c.Adopt(cycle)
}

// auto has c find its iterations by itself.
func auto(c *blocks.Cyclic) error {
	c.Record(autoRequests, func(iteration []blocks.Request) {
		ctx, cancel := context.WithTimeout(context.Background(), autoTime)
		defer cancel()
		if cycle, err := cyclic.Solve(ctx, iteration, solvers.Auto(), dsa.Options{}); err == nil {
			c.Adopt(cycle)
		}
	})
	return nil
}

// follow replays a program on an allocator that was prepared.
func (e *experiment) follow(p *replay.Program, r *requests, how string, prepare func(*blocks.Cyclic) error) error {
	dev := sim.New(0, sim.H200())
	c, err := blocks.NewCyclic(dev, blocks.PlannedStitchConf())
	if err != nil {
		return err
	}
	if err := prepare(c); err != nil {
		return err
	}
	watch := &watched{Cyclic: c, dev: dev, from: r.spans[silentAfter].Lo + (plannedAfter-silentAfter)*(r.spans[silentAfter].Hi-r.spans[silentAfter].Lo)}
	res, err := replay.Run(context.Background(), p, watch, dev)
	if err != nil {
		return err
	}
	followed, strayed := c.Followed()
	excess := float64(res.Stats.PeakReserved)/float64(res.Stats.PeakAllocated) - 1
	e.add(how+" "+p.Name, fmt.Sprintf("reserved %.2f %% above the bound, %d requests by plan, %d not", 100*excess, followed, strayed),
		fmt.Sprintf("%.0f %%", 100*plannedExcess), excess <= plannedExcess && followed > 0)
	calls, searches := dev.MemoryCalls()-watch.calls, c.Searches()-watch.searches
	e.add(how+" "+p.Name+", then", fmt.Sprintf("%d calls, %d searches after iteration %d", calls, searches, plannedAfter), "0, 0", calls+searches == 0)
	return nil
}

// watched takes the account at a request.
type watched struct {
	*blocks.Cyclic
	dev             *sim.Device
	from, requests  int
	calls, searches int64
}

func (w *watched) Malloc(size int64, stream cuda.Stream, pool blocks.Pool) (cuda.Ptr, error) {
	if w.requests == w.from {
		w.calls, w.searches = w.dev.MemoryCalls(), w.Searches()
	}
	w.requests++
	return w.Cyclic.Malloc(size, stream, pool)
}
