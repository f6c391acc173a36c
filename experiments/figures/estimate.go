package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gm/internal/bench/estimate"
	"gm/internal/models/shapes"
	"gm/internal/models/synth"
	"gm/internal/units"
)

// estimatePeak is by how much an estimate may differ from the recorded peak of live bytes.
const estimatePeak = 0.03

// torchtitan is the memory that torchtitan reports as reserved, for Llama 3.1 on H100s of 96 GB with expandable_segments and full recomputation
// (github.com/pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, tables 2 and 4 to 6).
func torchtitan() []struct {
	job string
	gib float64
} {
	return []struct {
		job string
		gib float64
	}{
		{"llama-8b,batch=1,seq=32Ki,ranks=8", 83.9},
		{"llama-8b,batch=1,seq=64Ki,ranks=4,cp=2", 84.2},
		{"llama-8b,batch=1,seq=128Ki,ranks=2,cp=4", 84.0},
		{"llama-8b,batch=1,seq=256Ki,cp=8", 84.5},
		{"llama-70b,batch=16,seq=8Ki,ranks=32,tp=8", 71.9},
		{"llama-405b,batch=4,seq=8Ki,ranks=8,tp=8,pp=8", 82.5},
		{"llama-405b,batch=1,seq=32Ki,ranks=8,tp=8,pp=8", 75.3},
	}
}

// thousand lists jobs on 1,024 GPUs.
func thousand() []string {
	return []string{
		"llama-65b,batch=1,seq=8Ki,ranks=128,tp=8", "llama-70b,batch=1,seq=8Ki,ranks=128,tp=8", "llama-405b,batch=1,seq=8Ki,ranks=8,tp=8,pp=16",
		"llama-405b,batch=1,seq=8Ki,ranks=128,tp=8",
	}
}

// splitJob is a job of experiments/fleet/parallel.sh, on two GPUs: a rank that is recorded (testdata/parallel), the configuration beside the script, and
// the stage of the rank.
type splitJob struct {
	rank, config, fields string
	stage                int
}

// recordedLayouts lists them.
func recordedLayouts() []splitJob {
	const split = "batch=2,ranks=2,ep=2"
	return []splitJob{
		{"tp-r0", "config", "batch=2,tp=2", 0},
		{"cp-r0", "config", "batch=2,cp=2", 0},
		{"cp-r1", "config", "batch=2,cp=2", 0},
		{"pp-r0", "config", "batch=1,micro=4,pp=2", 0},
		{"pp-r1", "config", "batch=1,micro=4,pp=2", 1},
		{"dp-r0", "config", "batch=2,ranks=2", 0},
		{"gqa-r0", "config-gqa", "batch=2,tp=2", 0},
		{"moe-r0", "config-mixtral", split, 0},
		{"moe-scores-r0", "config-mixtral", split, 0},
		{"moe-scores-r1", "config-mixtral", split, 0},
		{"mla-r0", "config-deepseek", split, 0},
	}
}

// job returns the job that is estimated.
func (l *splitJob) job() (*synth.Job, error) {
	f, err := os.Open(filepath.Join("experiments/fleet", l.config+".json"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	model, err := shapes.ReadConfig(f, l.config)
	if err != nil {
		return nil, err
	}
	return synth.New(model, strings.Split("seq=4Ki,"+l.fields, ","), synth.Strategy{})
}

// estimateLayouts holds estimates of jobs whose layers, tokens, stages and experts are split against what was recorded.
func estimateLayouts(e *experiment) error {
	for _, l := range recordedLayouts() {
		job, err := l.job()
		if err != nil {
			return err
		}
		made, err := estimate.Of(context.Background(), job, func() {})
		if err != nil {
			return err
		}
		recorded, err := device(filepath.Join("testdata/parallel", l.rank+".parquet"))
		if err != nil {
			return err
		}
		e.compareEstimate(l.rank, made.Stages[l.stage].Live, recorded.PeakLive)
		if err := e.compareReserved(l.rank, made.Stages[l.stage].Reserved); err != nil {
			return err
		}
	}
	return nil
}

// compareReserved holds what PyTorch's allocator and gmstitch's reserve for a rank, by setting, against what they reserved.
func (e *experiment) compareReserved(name string, made []int64) error {
	kind, rank, _ := strings.Cut(name, "-r")
	for i, setting := range estimate.Settings() {
		under, ok := map[string]string{"torch": "", "stitch": " under gmstitch"}[setting]
		if !ok {
			continue
		}
		reserved, err := reservedByRank(kind+under, rank)
		if err != nil {
			return err
		}
		if reserved > 0 {
			e.compareEstimate(name+", reserved by "+setting, made[i], reserved)
		}
	}
	return nil
}

// reservedByRank returns the bytes that a rank of a run of experiments/fleet/parallel.sh reserved, 0 where there was no such run.
func reservedByRank(run, rank string) (int64, error) {
	text, err := os.ReadFile("experiments/fleet/results/parallel-h200x2.txt")
	if err != nil {
		return 0, err
	}
	_, text, ran := bytes.Cut(text, []byte("== "+run+": "))
	if !ran {
		return 0, nil
	}
	for line := range strings.Lines(string(text)) {
		var result struct{ Rank, Reserved json.Number }
		if said, ok := strings.CutPrefix(line, "RESULT "); ok && json.Unmarshal([]byte(said), &result) == nil && result.Rank.String() == rank {
			return result.Reserved.Int64()
		}
	}
	return 0, fmt.Errorf("no rank %s of %q was recorded", rank, run)
}

func (e *experiment) compareEstimate(name string, made, recorded int64) {
	off := float64(made)/float64(recorded) - 1
	e.add("estimate "+name, fmt.Sprintf("%s, recorded %s: %+.2f %%", units.Bytes(made), units.Bytes(recorded), 100*off),
		fmt.Sprintf("within %.0f %%", 100*estimatePeak), math.Abs(off) <= estimatePeak)
}

// measureEstimate holds estimates against recorded and published peaks, and compares allocators at scale.
func measureEstimate(e *experiment) error {
	for _, s := range e.traces {
		job, ok := recordedJobs()[s.name]
		if !ok {
			continue
		}
		made, err := estimated(job.model+",seq="+job.lengths, job.strategy)
		if err != nil {
			return err
		}
		recorded, err := countTrace(s.trace)
		if err != nil {
			return err
		}
		e.compareEstimate(s.name, made.Stages[0].Live, int64(recorded.peak))
	}
	if err := estimateLayouts(e); err != nil {
		return err
	}
	for _, p := range torchtitan() {
		made, err := estimated(p.job, "RM")
		if err != nil {
			return err
		}
		gib := float64(made.Settings[1].Reserved) / (1 << 30)
		e.table.Add("estimate "+p.job, fmt.Sprintf("%.2f GiB, published %.1f GiB: %+.1f %%", gib, p.gib, 100*(gib/p.gib-1)), "", "beside")
	}
	for _, spec := range thousand() {
		for _, letters := range []string{"RM", "ORM"} {
			made, err := estimated(spec, letters)
			if err != nil {
				return err
			}
			text := ""
			for _, s := range made.Settings {
				text += fmt.Sprintf("%s %s, ", s.Allocator, units.Bytes(s.Reserved))
			}
			text += fmt.Sprintf("gmswap run -m could do with %s", units.Bytes(made.Swap.Least))
			for _, c := range made.Swap.Cards {
				text += fmt.Sprintf("; %s, %d GB: %s to the host, %.2f to %.2f s more than %.2f", c.Card.Name, c.Card.GB, units.Bytes(c.Moved), c.Least.Seconds(),
					c.Most.Seconds(), c.Step.Seconds())
			}
			e.table.Add("estimate "+spec+" "+letters, text, "", "beside")
		}
	}
	return nil
}

func estimated(spec, letters string) (*estimate.Estimate, error) {
	strategy, err := synth.ParseStrategy(letters)
	if err != nil {
		return nil, err
	}
	job, err := synth.Parse(spec, strategy)
	if err != nil {
		return nil, err
	}
	return estimate.Of(context.Background(), job, func() {})
}
