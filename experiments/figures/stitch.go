package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/report"
	"gm/internal/trace/iterations"
)

// What gm's allocator must come to on each trace, and in geometric mean: peak allocated of peak reserved, which may not be more than under
// expandable_segments, and the modelled time of driver calls as a share of the time that is left after the first two iterations. On traces
// whose iterations do not change in size there may be no driver call after the third.
const (
	stitchUtilisation     = 0.98
	stitchMeanUtilisation = 0.99
	stitchDriverShare     = 0.01
	settledAfter          = 2
	silentAfter           = 3
)

// rivals stand beside it in the table.
const rivals = "expandable,torch,gmlake"

// recordedPrograms are traces of programs that are measured whatever TRACES says.
const recordedPrograms = "testdata/programs/*.parquet"

// measureStitch replays every trace through gm's allocator and its rivals.
func measureStitch(e *experiment) error {
	programs, err := e.programs(recordedPrograms)
	if err != nil {
		return err
	}
	specs, err := bench.ParseSpecs(rivals)
	if err != nil {
		return err
	}
	rows, err := bench.Compare(context.Background(), programs, specs, 0, func() {})
	if err != nil {
		return err
	}
	mean := 0.0
	for i, p := range programs {
		run, err := stitchRun(p, blocks.DefaultStitchConf())
		if err != nil {
			return err
		}
		mean += math.Log(run.utilisation)
		beside := ""
		others := rows[i*len(specs):][:len(specs)]
		for _, row := range others {
			beside += fmt.Sprintf("; %s %.3f", row.Allocator, row.Utilisation)
		}
		e.add("stitch "+p.Name, fmt.Sprintf("utilisation %.4f%s", run.utilisation, beside),
			fmt.Sprintf("%.2f; as %s", stitchUtilisation, others[0].Allocator),
			run.utilisation >= stitchUtilisation && run.reserved <= others[0].PeakReserved)
		lake, err := gmlakeRun(p)
		if err != nil {
			return err
		}
		e.driverTime(p.Name, run, lake)
	}
	mean = math.Exp(mean / float64(len(programs)))
	e.add("stitch: geometric mean", fmt.Sprintf("utilisation %.4f", mean), fmt.Sprintf("%.2f", stitchMeanUtilisation), mean >= stitchMeanUtilisation)
	return nil
}

// driverTime adds the driver's part of a run of gm's allocator, and of GMLake's beside it: of all of the run, and of what follows the first
// iterations, in which both settle.
func (e *experiment) driverTime(name string, run, lake stitched) {
	if !run.settled {
		e.table.Add("stitch "+name+", driver", "no three iterations", "", "not measured")
		return
	}
	e.add("stitch "+name+", driver", run.driver(), fmt.Sprintf("%.0f %% after two", 100*stitchDriverShare), run.share <= stitchDriverShare)
	e.table.Add("gmlake "+name+", driver", lake.driver(), "", "beside")
	if run.fixed {
		calls := func(s stitched) string { return fmt.Sprintf("%d calls after iteration %d", s.callsSilent, silentAfter) }
		e.add("stitch "+name+", fixed shapes", calls(run), "0", run.callsSilent == 0)
		e.table.Add("gmlake "+name+", fixed shapes", calls(lake), "", "beside")
	}
}

// programs loads all traces of training or inference, files that match a pattern included and those that the snapshots of single features are too
// short for left out.
func (e *experiment) programs(pattern string) ([]*replay.Program, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	traces := slices.Clone(e.traces)
	for _, file := range files {
		traces = append(traces, sample{strings.TrimSuffix(filepath.Base(file), ".parquet"), "", file})
	}
	var all []*replay.Program
	for _, s := range traces {
		programs, err := replay.Open(s.trace)
		if err != nil {
			return nil, err
		}
		for _, p := range programs {
			if len(p.Sizes) >= leastRequests || slices.Contains(files, s.trace) {
				p.Name = s.name
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// leastRequests is how many requests a trace must have for its driver calls to be no matter of its beginning.
const leastRequests = 5000

// stitched is how a run went.
type stitched struct {
	utilisation  float64
	reserved     int64 // at the peak
	settled      bool  // there are iterations enough for the rest
	shareWhole   float64
	callsWhole   int64
	share        float64 // from the third iteration on
	callsSettled int64
	fixed        bool // all iterations but the first two ask for the same
	callsSilent  int64
	accounts     []account // at the beginning of each iteration, and at the end
}

func (s *stitched) driver() string {
	return fmt.Sprintf("%.2f %% of the run, %d calls; after two iterations %.2f %%, %d calls",
		100*s.shareWhole, s.callsWhole, 100*s.share, s.callsSettled)
}

// account is what a device was called for up to a request.
type account struct {
	request      int
	calls, costs int64
}

// counted takes the account at some requests.
type counted struct {
	blocks.Allocator
	dev      *sim.Device
	requests int
	at       []int // in order
	accounts []account
}

func (c *counted) Malloc(size int64, stream cuda.Stream, pool blocks.Pool) (cuda.Ptr, error) {
	if len(c.at) > len(c.accounts) && c.at[len(c.accounts)] == c.requests {
		c.note()
	}
	c.requests++
	return c.Allocator.Malloc(size, stream, pool)
}

func (c *counted) note() {
	c.accounts = append(c.accounts, account{c.requests, c.dev.MemoryCalls(), c.dev.Elapsed().Nanoseconds()})
}

// stitchRun replays a program through gm's allocator.
func stitchRun(p *replay.Program, conf blocks.StitchConf) (stitched, error) {
	return settledRun(p, func(dev cuda.Device) (blocks.Allocator, error) { return blocks.NewStitch(dev, conf) })
}

// gmlakeRun replays it through GMLake's.
func gmlakeRun(p *replay.Program) (stitched, error) {
	return settledRun(p, func(dev cuda.Device) (blocks.Allocator, error) {
		return blocks.NewGMLake(dev, blocks.DefaultGMLakeConf())
	})
}

// settledRun replays a program, and takes the account of what follows its first iterations.
func settledRun(p *replay.Program, open func(cuda.Device) (blocks.Allocator, error)) (stitched, error) {
	var run stitched
	dev := sim.New(0, sim.H200())
	a, err := open(dev)
	if err != nil {
		return run, err
	}
	r := requestsOf(p)
	begins := r.begins()
	c := &counted{Allocator: a, dev: dev, at: begins}
	res, err := replay.Run(context.Background(), p, c, dev)
	if err != nil {
		return run, err
	}
	run.reserved = res.Stats.PeakReserved
	run.utilisation = float64(res.Stats.PeakAllocated) / float64(run.reserved)
	if run.settled = len(begins) > silentAfter; !run.settled {
		return run, nil
	}
	c.note()
	run.accounts = c.accounts
	end, settled, silent := c.accounts[len(c.accounts)-1], c.accounts[settledAfter], c.accounts[silentAfter]
	run.callsWhole, run.shareWhole = end.calls, float64(end.costs)/float64(p.DurationNS())
	run.callsSettled, run.callsSilent = end.calls-settled.calls, end.calls-silent.calls
	run.share = float64(end.costs-settled.costs) / float64(p.TimesNS[len(p.TimesNS)-1]-r.times[settled.request])
	run.fixed = r.fixed()
	return run, nil
}

// requests are the requests of a program, in order.
type requests struct {
	sizes, streams, live, times []int64
	spans                       []iterations.Span
}

func requestsOf(p *replay.Program) *requests {
	r, live := &requests{}, int64(0)
	for i, kind := range p.Kinds {
		t := p.Tensors[i]
		switch kind {
		case replay.Alloc:
			r.sizes = append(r.sizes, p.Sizes[t])
			r.streams = append(r.streams, int64(p.Streams[t]))
			r.live = append(r.live, live)
			r.times = append(r.times, p.TimesNS[i])
			live += p.Sizes[t]
		case replay.Free, replay.Complete:
			live -= p.Sizes[t]
		}
	}
	r.spans = iterations.Find(r.sizes, r.streams, r.live)
	return r
}

// begins returns the requests at which the iterations begin; where there are none, as when text is generated, those at each tenth.
func (r *requests) begins() []int {
	var at []int
	for _, s := range r.spans {
		at = append(at, s.Lo)
	}
	if at == nil {
		for i := range 10 {
			at = append(at, i*len(r.sizes)/10)
		}
	}
	return at
}

// fixed says whether the last iterations, from the third on, ask for the same sizes, but for what is left of the last one.
func (r *requests) fixed() bool {
	if len(r.spans) <= silentAfter {
		return false
	}
	first := r.spans[settledAfter]
	for _, s := range r.spans[silentAfter : len(r.spans)-1] {
		if !slices.Equal(r.sizes[first.Lo:first.Hi], r.sizes[s.Lo:s.Hi]) {
			return false
		}
	}
	return true
}

// measureFrontier draws what utilisation costs in driver time, by the settings of gm's allocator, in geometric mean over the traces.
func measureFrontier(e *experiment) error {
	programs, err := e.programs(recordedPrograms)
	if err != nil {
		return err
	}
	chart := report.Growth{Title: "memory that is not used against time in the driver, by slack", X: "driver time, % of the run", Y: "unused at the peak, %", Linear: true}
	slacks := []float64{0, 0.005, 0.01, 0.02, 0.04}
	for _, pieces := range []int64{64, 128, 192, 256, 512, 1024, 4096} {
		curve := report.Curve{Name: fmt.Sprintf("pieces of 1/%d", pieces)}
		for _, slack := range slacks {
			conf := blocks.DefaultStitchConf()
			conf.Slack, conf.Pieces = slack, pieces
			mean, worst, share, err := frontier(programs, conf)
			if err != nil {
				return err
			}
			curve.X, curve.Y = append(curve.X, 100*share), append(curve.Y, 100*(1-mean))
			e.table.Add(fmt.Sprintf("frontier: pieces 1/%d, slack %.1f %%", pieces, 100*slack),
				fmt.Sprintf("utilisation %.4f, at worst %.4f; driver at most %.2f %%", mean, worst, 100*share), "", "")
		}
		chart.Curves = append(chart.Curves, curve)
	}
	return drawGrowth("frontier", chart)
}

// frontier returns the mean and the least utilisation of a setting, and the largest share of the driver.
func frontier(programs []*replay.Program, conf blocks.StitchConf) (mean, worst, share float64, err error) {
	worst = 1
	for _, p := range programs {
		run, err := stitchRun(p, conf)
		if err != nil {
			return 0, 0, 0, err
		}
		mean += math.Log(run.utilisation)
		worst, share = min(worst, run.utilisation), max(share, run.share)
	}
	return math.Exp(mean / float64(len(programs))), worst, share, nil
}
