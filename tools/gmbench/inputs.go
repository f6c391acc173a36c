package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gm/formats/column"
	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/cli"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/input"
	"gm/internal/units"
)

// inputs are the files to replay, and the device to replay them on.
type inputs struct {
	Files    []string    `arg:"" optional:"" name:"trace|plan" help:"Traces, plans, and recordings that gmtrace import reads, such as PyTorch snapshots${folder}. Standard input if there is none, or for '-'."`
	Capacity units.Bytes `placeholder:"SIZE" help:"Memory of the simulated GPU, such as 80GiB. 4 TiB by default."`
	Costs    string      `placeholder:"FILE" help:"Costs of driver calls, as gmbench calibrate measured them. Those of an H200 by default."`
}

// open reads the files. It warns where a clock jumps and where requests failed during the recording.
func (in *inputs) open(c *cli.Context) ([]*replay.Program, bench.GPU, error) {
	programs, gpu, err := in.openBy(c, replay.Read)
	for _, p := range programs {
		if len(p.Refusals) > 0 {
			c.Warn("%s: a request of %s failed while it was recorded: what it does with more memory is not known", p.Name, units.Bytes(p.Refusals[0].Size))
		}
	}
	return programs, gpu, err
}

// openBy is open with a function that loads the programs of a source, which it takes over. It does not warn of requests that failed. Programs
// that request nothing are left out.
func (in *inputs) openBy(c *cli.Context, read reader) ([]*replay.Program, bench.GPU, error) {
	if err := cli.CheckFiles(append(slices.Clip(in.Files), in.Costs), nil); err != nil {
		return nil, bench.GPU{}, err
	}
	gpu, err := simulated(in.Capacity, in.Costs)
	if err != nil {
		return nil, gpu, err
	}
	programs, err := loadBy(c, in.Files, func(s *column.Source) ([]*replay.Program, error) {
		all, err := read(s)
		return slices.DeleteFunc(all, idle), err
	})
	for _, p := range programs {
		if p.Jump != "" {
			c.Warn("%s: %s", p.Name, p.Jump)
		}
	}
	return programs, gpu, err
}

// idle reports whether a program requests nothing.
func idle(p *replay.Program) bool { return len(p.Sizes) == 0 }

// simulated returns the device to simulate, with the costs in a file, or those of an H200 for "".
func simulated(capacity units.Bytes, costs string) (bench.GPU, error) {
	gpu := bench.GPU{Capacity: int64(capacity), Costs: sim.H200()}
	if costs == "" {
		return gpu, nil
	}
	measured, err := sim.ReadCalibration(costs)
	gpu.Costs = measured.Costs
	return gpu, err
}

// reader loads the programs of a source, which it takes over.
type reader = func(*column.Source) ([]*replay.Program, error)

func load(c *cli.Context, files []string) ([]*replay.Program, error) {
	return loadBy(c, files, replay.Read)
}

func loadBy(c *cli.Context, files []string, read reader) ([]*replay.Program, error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	var all []*replay.Program
	for _, file := range files {
		source, err := input.Open(c, file)
		if err != nil {
			return nil, err
		}
		programs, err := read(source)
		if err != nil {
			return nil, err
		}
		if len(programs) == 0 {
			return nil, fmt.Errorf("%s: holds no allocations of a framework", file)
		}
		all = append(all, programs...)
	}
	shorten(all)
	return all, nil
}

// shorten names programs by their files' base names where these are all different.
func shorten(programs []*replay.Program) {
	seen := map[string]bool{}
	for _, p := range programs {
		base := filepath.Base(p.Name)
		if seen[base] {
			return
		}
		seen[base] = true
	}
	for _, p := range programs {
		p.Name = strings.Replace(filepath.Base(p.Name), ".parquet", "", 1)
	}
}

// warn warns of what a comparison cannot know.
func warn(c *cli.Context, programs []*replay.Program) {
	for _, p := range programs {
		if p.Partial {
			c.Warn("%s: a plan of a part of a trace, or of a recording that began midway: for exact figures of torch and expandable replay the trace", p.Name)
		}
		if _, unknown := allocconf.Recorded(p.AllocConf); len(unknown) > 0 {
			c.Warn("%s: recorded with settings that are not known: %s", p.Name, strings.Join(unknown, ", "))
		}
	}
}

// warnOfShares warns of settings that are shares of a capacity that was not given.
func warnOfShares(c *cli.Context, programs []*replay.Program, alloc []string) {
	settings := strings.Join(alloc, ",")
	for _, name := range []string{"garbage_collection_threshold", "per_process_memory_fraction"} {
		if strings.Contains(settings, name) {
			c.Warn("%s is a share of --capacity, which was not given", name)
		}
	}
	for _, p := range programs {
		if conf, _ := allocconf.Recorded(p.AllocConf); conf.NeedsLimit() {
			c.Warn("%s: recorded with settings that are shares of --capacity, which was not given: %s", p.Name, p.AllocConf)
		}
	}
}
