package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/units"
)

// What the text of the GMLake paper (ASPLOS 2024) says of its figures. The bars themselves are printed without numbers.
const (
	lakeUtilisation = 0.90     // sections 5.2.1 and 5.2.2: fragmentation of 5 to 10 %
	lakeLarge       = 0.95     // section 5.3: of 13 and 20 billion parameters
	lakeOneGPU      = 0.90     // section 2.4, figure 4: PyTorch on one GPU
	lakeManyGPUs    = 0.76     // and on 16
	lakeReduction   = 0.15     // section 5.1: of the fragmentation ratio, 1 - utilisation, in the mean
	lakeSaved       = 9.2e9    // bytes of reserved memory, in the mean
	lakeCapacity    = 80 << 30 // bytes of an A100
	lakeConverged   = 4        // section 5.4: iterations
	lakeSteps       = "6"      // of a synthetic trace
	lakeLongSteps   = "12"
	lakeBatch       = ",batch=8" // of what has no batch in the paper
	lakeAllocators  = "torch,gmlake"
)

// lakeCell is a job under PyTorch's allocator and GMLake's.
type lakeCell struct {
	job         string // what was replayed: figures share some jobs
	torch, lake bench.Row
	program     *replay.Program
}

// measureGMLake makes the figures of the paper's allocator: from synthetic traces, the recordings of the same models, and costs of driver
// calls. The paper gives neither the batch nor the lengths of most: they are those that gmtrace synth has by default.
func measureGMLake(e *experiment) error {
	e.lakeTable1()
	e.lakeFigure6()
	var cells []lakeCell
	for _, figure := range []func(*experiment) ([]lakeCell, error){lakeStrategies, lakeScaleOut, lakeBatches, lakeRecorded} {
		more, err := figure(e)
		if err != nil {
			return err
		}
		cells = append(cells, more...)
	}
	e.lakeSummary(cells)
	if err := e.lakeTrace(); err != nil {
		return err
	}
	for _, what := range []string{"10 to 13, throughput", "3, 5, 12"} {
		e.table.Add("gmlake figure "+what, "not made: "+lakeLeftOut[what], "", "not measured")
	}
	return nil
}

// lakeLeftOut says why figures are not made.
var lakeLeftOut = map[string]string{
	"10 to 13, throughput": "a replay has no kernels; the driver's part of the time is in figures-stitch",
	"3, 5, 12":             "only the text's ranges are known; Colossal-AI and DeepSpeed are not recorded",
}

// lakeJob replays a synthetic trace.
func (e *experiment) lakeJob(spec, strategy, steps string, capacity int64) (lakeCell, error) {
	file := filepath.Join(e.dir, "lake.parquet")
	if _, err := gmtraceSynth(file, spec, "--strategy", strategy, "--steps", steps); err != nil {
		return lakeCell{}, err
	}
	return lakeReplay(spec+" "+strategy, file, capacity)
}

func lakeReplay(job, file string, capacity int64) (lakeCell, error) {
	programs, err := replay.Open(file)
	if err != nil {
		return lakeCell{}, err
	}
	specs, err := bench.ParseSpecs(lakeAllocators)
	if err != nil {
		return lakeCell{}, err
	}
	rows, err := bench.Compare(context.Background(), programs[:1], specs, capacity, func() {})
	if err != nil {
		return lakeCell{}, err
	}
	return lakeCell{job, rows[0], rows[1], programs[0]}, nil
}

func lakeUse(r *bench.Row) string {
	if r.OOM != nil {
		return r.Allocator + " oom"
	}
	return fmt.Sprintf("%s %.3f of %s", r.Allocator, r.Utilisation, units.Bytes(r.PeakReserved))
}

func (c *lakeCell) String() string { return lakeUse(&c.torch) + "; " + lakeUse(&c.lake) }

// addLake adds a cell whose utilisation under GMLake is to be at least so much.
func (e *experiment) addLake(name string, c *lakeCell, least float64) {
	e.add("gmlake "+name, c.String(), fmt.Sprintf("gmlake %.2f", least), c.lake.OOM == nil && c.lake.Utilisation >= least)
}

// lakeStrategies is figure 10: strategies on four GPUs.
func lakeStrategies(e *experiment) (cells []lakeCell, err error) {
	for _, model := range []string{"opt-13b", "vicuna-13b", "gpt-neox-20b"} {
		for _, strategy := range []string{"N", "R", "LR", "RO", "LRO"} {
			spec := model + ",ranks=4" + lakeBatch
			c, err := e.lakeJob(spec, strategy, lakeSteps, 0)
			if err != nil {
				return nil, err
			}
			e.addLake("figure 10, "+spec+" "+strategy, &c, lakeUtilisation)
			cells = append(cells, c)
		}
	}
	return cells, nil
}

// lakeScaleOut is figures 4 and 11: LR on 1 to 16 GPUs. The paper does not say which strategies figure 4 is of.
func lakeScaleOut(e *experiment) (cells []lakeCell, err error) {
	for _, model := range []string{"opt-13b", "vicuna-13b", "gpt-neox-20b"} {
		for _, ranks := range []int{1, 2, 4, 8, 16} {
			spec := fmt.Sprintf("%s,ranks=%d", model, ranks) + lakeBatch
			c, err := e.lakeJob(spec, "LR", lakeSteps, 0)
			if err != nil {
				return nil, err
			}
			e.addLake("figure 11, "+spec+" LR", &c, lakeUtilisation)
			cells = append(cells, c)
			if model != "opt-13b" {
				continue
			}
			used := fmt.Sprintf("torch %.3f", c.torch.Utilisation)
			switch ranks {
			case 1:
				e.add("gmlake figure 4, "+spec+" LR", used, fmt.Sprintf("above %.2f", lakeOneGPU), c.torch.Utilisation > lakeOneGPU)
			case 16:
				e.add("gmlake figure 4, "+spec+" LR", used, fmt.Sprintf("%.2f, to 0.10", lakeManyGPUs),
					c.torch.Utilisation > lakeManyGPUs-0.1 && c.torch.Utilisation < lakeManyGPUs+0.1)
			}
		}
	}
	return cells, nil
}

// lakeBatches is figure 13: LR on four GPUs of 80 GiB, up to a batch that fills them.
func lakeBatches(e *experiment) (cells []lakeCell, err error) {
	for _, model := range []string{"opt-1.3b", "opt-13b", "gpt-neox-20b"} {
		least := lakeLarge
		if model == "opt-1.3b" {
			least = lakeUtilisation
		}
		for _, batch := range []int{8, 16, 32, 64} {
			spec := fmt.Sprintf("%s,ranks=4,batch=%d", model, batch)
			c, err := e.lakeJob(spec, "LR", lakeSteps, lakeCapacity)
			if err != nil {
				return nil, err
			}
			name := "figure 13, " + spec + " LR, 80 GiB"
			if c.lake.OOM != nil {
				e.table.Add("gmlake "+name, c.String(), "", "")
				continue
			}
			e.addLake(name, &c, least)
			cells = append(cells, c)
		}
	}
	return cells, nil
}

// lakeRecorded replays the recordings of the paper's models.
func lakeRecorded(e *experiment) (cells []lakeCell, err error) {
	for _, s := range e.traces {
		if !strings.HasPrefix(s.name, "opt") && !strings.HasPrefix(s.name, "neox") {
			continue
		}
		c, err := lakeReplay("recording "+s.name, s.trace, 0)
		if err != nil {
			return nil, err
		}
		e.addLake("recording, "+s.name, &c, lakeUtilisation)
		cells = append(cells, c)
	}
	return cells, nil
}

// lakeSummary is the abstract's means, over the jobs that ran on both.
func (e *experiment) lakeSummary(cells []lakeCell) {
	seen := map[string]bool{}
	n, saved, most, fragments, worst := 0.0, 0.0, 0.0, 0.0, 0.0
	for i := range cells {
		c := &cells[i]
		if c.lake.Reduction == nil || seen[c.job] {
			continue
		}
		seen[c.job] = true
		n++
		saved += float64(c.torch.PeakReserved - c.lake.PeakReserved)
		most = max(most, *c.lake.Reduction)
		fragments += c.lake.Utilisation - c.torch.Utilisation
		worst = max(worst, c.lake.Utilisation-c.torch.Utilisation)
	}
	fragments, saved = fragments/n, saved/n
	e.add("gmlake: fragmentation against torch", fmt.Sprintf("-%.1f points in the mean of %.0f jobs, up to -%.1f", 100*fragments, n, 100*worst),
		"-15 %, of 76; up to -33 %", fragments >= lakeReduction)
	e.add("gmlake: reserved against torch", fmt.Sprintf("-%.1f GB in the mean, up to -%.1f %%", saved/1e9, 100*most), "-9.2 GB", saved >= lakeSaved)
}

// lakeTrace is figure 14: a job that only GMLake has memory for, and the driver calls of each iteration. The paper does
// not give the length of the sequences, so several are tried.
func (e *experiment) lakeTrace() error {
	const spec = "gpt-neox-20b,ranks=4,batch=72"
	apart := false
	var last lakeCell
	for _, length := range []string{"512", "640", "768", "896", "1Ki"} {
		c, err := e.lakeJob(spec+",seq="+length, "LR", lakeLongSteps, lakeCapacity)
		if err != nil {
			return err
		}
		e.table.Add("gmlake figure 14, "+spec+",seq="+length+" LR, 80 GiB", c.String(), "", "beside")
		if c.torch.OOM != nil && c.lake.OOM == nil {
			apart, last = true, c
		}
	}
	e.add("gmlake figure 14, a length at which only torch runs out of memory", fmt.Sprint(apart), "true", apart)
	if !apart {
		return nil
	}
	run, err := gmlakeRun(last.program)
	if err != nil {
		return err
	}
	if len(run.accounts) <= lakeConverged {
		e.table.Add("gmlake figure 14, convergence", "too few iterations were found", "", "not measured")
		return nil
	}
	calls := ""
	for i, a := range run.accounts[1:] {
		calls += fmt.Sprintf("%d ", a.calls-run.accounts[i].calls)
	}
	e.add("gmlake figure 14, driver calls of each iteration", calls, fmt.Sprintf("0 after %d", lakeConverged),
		run.callsSince(lakeConverged) == 0)
	return nil
}

// callsSince returns the calls after the first n iterations.
func (s *stitched) callsSince(n int) int64 {
	return s.accounts[len(s.accounts)-1].calls - s.accounts[n].calls
}
