package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gm/internal/models/graphs"
	"gm/internal/swap"
	"gm/internal/swap/policy"
	"gm/internal/swap/relax"
	"gm/internal/swap/simulate"
	"gm/internal/swap/store"
)

// What recomputation has to come to: time above the bound for steps of so many operators, and time to plan those of so many.
const (
	rematGap       = 1.0 // per cent of the step
	rematGapOps    = 500
	rematGapRatio  = 300 // and in no less memory
	rematTime      = 10 * time.Second
	rematTimeOps   = 2500
	rematThousands = 1000 // of the peak with nothing moved: ratios are in these
)

// rematRatios are amounts of memory, in thousandths of the peak with nothing moved, parameters included.
var rematRatios = []int64{900, 800, 700, 600, 500, 400, 300, 200, 100}

// rematRivals are the policies that remat is compared with.
var rematRivals = []string{"dtr", "coop"}

// noLink copies nothing: there is no memory of the host for it.
type noLink struct{}

func (noLink) OutTime(int64) time.Duration { return time.Hour }
func (noLink) InTime(int64) time.Duration  { return time.Hour }

// rematScore is what the targets are judged by.
type rematScore struct {
	cells, faster    int     // in which remat and a rival have a schedule, and in which remat's is no slower than any of theirs
	gap              float64 // the most above the bound, in per cent
	gapAt, slowestAt string
	gapCells, within int
	slowest          time.Duration
	steps, lower     int // and those in which remat has a schedule in less memory than its rivals need
}

// measureRemat plans steps that recompute and copy nothing: DTR's logs, a recorded step and networks by their shapes.
func measureRemat(e *experiment) error {
	all, err := e.rematGraphs()
	if err != nil {
		return err
	}
	var s rematScore
	for _, g := range all {
		if err := s.measure(e, g); err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	e.add("remat no slower than dtr and coop", fmt.Sprintf("%d of %d amounts of memory in which one of them has a schedule", s.faster, s.cells), "all", s.faster == s.cells)
	e.add("remat in less memory than dtr and coop need", fmt.Sprintf("%d of %d steps, by 1 %% of the peak", s.lower, s.steps), "all", s.lower == s.steps)
	e.add(fmt.Sprintf("remat above the bound, up to %d operators, in 0.3 and more", rematGapOps), fmt.Sprintf("%d of %d within; at most %.2f %% (%s)", s.within, s.gapCells, s.gap, s.gapAt),
		fmt.Sprintf("%.0f %%", rematGap), s.within == s.gapCells)
	e.add(fmt.Sprintf("time to plan, up to %d operators", rematTimeOps), fmt.Sprintf("at most %.1f s (%s)", s.slowest.Seconds(), s.slowestAt), rematTime.String(), s.slowest <= rematTime)
	return nil
}

// rematGraphs returns the steps, in which tensors have times to recompute them.
func (e *experiment) rematGraphs() ([]*swap.Graph, error) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("GM_SHARED"), "graphs", "dtr", "*.log.gz"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		e.table.Add("recompute DTR's logs", "no logs in GM_SHARED/graphs/dtr", "", "not measured")
	}
	var all []*swap.Graph
	for _, file := range files {
		g, err := readLog(file)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	recorded, err := store.ReadGraph("testdata/steps/llama-32k.parquet")
	if err != nil {
		return nil, err
	}
	all = append(all, recorded.Graph)
	for _, spec := range []string{"resnet-50", "inception-v4", "gpt-7b,seq=16Ki"} {
		m, err := graphs.Build(spec)
		if err != nil {
			return nil, err
		}
		all = append(all, m.Graph)
	}
	slices.SortStableFunc(all, func(a, b *swap.Graph) int { return len(a.Ops) - len(b.Ops) })
	return all, nil
}

// measure plans one step in less and less memory.
func (s *rematScore) measure(e *experiment, g *swap.Graph) error {
	peak := slices.Max(g.Plain())
	least := map[string]int64{} // ratios in which rivals have a schedule
	for _, ratio := range rematRatios {
		l := swap.Limits{Device: peak / rematThousands * ratio, Link: noLink{}}
		bound, possible := rematBound(g, l)
		if !possible {
			break
		}
		begin := time.Now()
		ours, err := rematStep(g, "remat", l)
		took := time.Since(begin)
		if err != nil {
			return err
		}
		words, rival := []string{}, time.Duration(0)
		for _, name := range rematRivals {
			step, err := rematStep(g, name, l)
			if err != nil {
				return err
			}
			if step > 0 {
				least[name] = ratio
			}
			if step > 0 && (rival == 0 || step < rival) {
				rival = step
			}
			words = append(words, name+" "+overheadOf(g, step))
		}
		s.judge(g, ratio, ours, rival, bound, took)
		words = append(words, "remat "+overheadOf(g, ours), "bound "+overheadOf(g, bound), fmt.Sprintf("%.1f s", took.Seconds()))
		e.add(fmt.Sprintf("recompute %s (%d operators) in %.2f", g.Name, len(g.Ops), float64(ratio)/rematThousands), strings.Join(words, ", "), "", true)
	}
	return s.measureLeast(e, g, least)
}

// measureLeast finds the least memory in which rivals have a schedule, below the ratios in which they have one, and plans in less, or in the
// same where nothing has a schedule in less.
func (s *rematScore) measureLeast(e *experiment, g *swap.Graph, from map[string]int64) error {
	const step, misses = 10, 3 // one per cent; what has no schedule that often in a row is taken to have none in less
	within := func(name string, ratio int64) (bool, error) {
		took, err := rematStep(g, name, swap.Limits{Device: slices.Max(g.Plain()) / rematThousands * ratio, Link: noLink{}})
		return took > 0, err
	}
	words, lowest := []string{}, int64(rematThousands)
	for _, name := range rematRivals {
		least := from[name]
		for ratio, missed := least-step, 0; ratio > 0 && missed < misses; ratio -= step {
			ok, err := within(name, ratio)
			if err != nil {
				return err
			}
			if missed++; ok {
				least, missed = ratio, 0
			}
		}
		if least > 0 {
			lowest = min(lowest, least)
		}
		words = append(words, fmt.Sprintf("%s in %.2f", name, float64(least)/rematThousands))
	}
	lasting := float64(rematLasting(g)) / float64(slices.Max(g.Plain()))
	if float64(lowest-step) < lasting*rematThousands {
		lowest += step // nothing has a schedule in less
	}
	ours, err := within("remat", lowest-step)
	if err != nil {
		return err
	}
	s.steps++
	verdict := "not"
	if ours {
		s.lower++
		verdict = "also"
	}
	words = append(words, fmt.Sprintf("remat %s in %.2f; nothing below %.3f", verdict, float64(lowest-step)/rematThousands, lasting))
	e.add("least memory for "+g.Name, strings.Join(words, ", "), "", true)
	return nil
}

// rematLasting returns the bytes without which there is no schedule: what some operator reads, writes and takes, and what cannot be recomputed.
func rematLasting(g *swap.Graph) int64 {
	fixed := *g
	fixed.Tensors = slices.Clone(g.Tensors)
	for i := range fixed.Tensors {
		t := &fixed.Tensors[i]
		if t.Recompute > 0 {
			continue
		}
		t.Uses = nil
		for op := t.Made + 1; op <= g.Tensors[i].Last(); op++ {
			t.Uses = append(t.Uses, op)
		}
	}
	return fixed.Least()
}

// judge counts one amount of memory.
func (s *rematScore) judge(g *swap.Graph, ratio int64, ours, rival, bound, took time.Duration) {
	where := fmt.Sprintf("%s in %.2f", g.Name, float64(ratio)/rematThousands)
	if rival > 0 {
		s.cells++
		if 0 < ours && ours <= rival {
			s.faster++
		}
	}
	if len(g.Ops) <= rematGapOps && ratio >= rematGapRatio && ours > 0 {
		gap := 100 * (float64(ours)/float64(bound) - 1)
		s.gapCells++
		if gap <= rematGap {
			s.within++
		}
		if gap > s.gap {
			s.gap, s.gapAt = gap, where
		}
	}
	if len(g.Ops) <= rematTimeOps && took > s.slowest {
		s.slowest, s.slowestAt = took, where
	}
}

// rematBound returns a lower bound: the higher of that of package policy and that of package relax, which takes too long for the largest steps.
func rematBound(g *swap.Graph, l swap.Limits) (time.Duration, bool) {
	bound, possible := policy.LowerBound(g, l)
	if !possible {
		return 0, false
	}
	effort := relax.Effort{Blocks: 50, Rounds: 6000}
	switch {
	case len(g.Ops) > rematTimeOps:
		return bound, true
	case len(g.Ops) > rematGapOps:
		effort = relax.Effort{Blocks: 30, Rounds: 2000}
	}
	relaxed, _ := relax.Bound(g, l.Device, effort)
	return max(bound, relaxed), true
}

// rematStep returns the time of a step under a policy, 0 if it has no schedule.
func rematStep(g *swap.Graph, name string, l swap.Limits) (time.Duration, error) {
	p, err := policy.Lookup(name)
	if err != nil {
		return 0, err
	}
	s, err := p.Plan(g, l)
	if _, short := errors.AsType[*policy.ShortError](err); short {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	r, err := simulate.Run(g, s.Actions, l.Link, nil)
	if err != nil {
		return 0, err
	}
	return r.Step, nil
}

// overheadOf returns how much longer a step is than with nothing moved.
func overheadOf(g *swap.Graph, step time.Duration) string {
	if step == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.2f %%", 100*(float64(step)/float64(g.Compute())-1))
}
