package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"gm/internal/bench"
	"gm/internal/bench/live"
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cli"
	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/cuda/sim"
	"gm/internal/trace/input"
	"gm/internal/units"
)

type replayCmd struct {
	File      string      `arg:"" optional:"" name:"trace|plan" help:"A trace, a plan, or a recording that gmtrace import reads, such as a PyTorch snapshot. Standard input if there is none, or for '-'."`
	Alloc     []string    `placeholder:"NAME[:SETTING=VALUE,...]" sep:"none" help:"Allocators of gmbench. By default stitch,torch,expandable,gmlake."`
	Device    string      `default:"0" placeholder:"N" help:"Number of the GPU, 0 by default, or sim for a simulated one."`
	Capacity  units.Bytes `placeholder:"SIZE" help:"What an allocator may take of the GPU, such as 40GiB. All by default; of a simulated one, 4 TiB."`
	Costs     string      `placeholder:"FILE" help:"What driver calls should cost, as gmbench calibrate measured it. Those of an H200 by default."`
	Check     check       `help:"Write into every tensor, and read some back before they are freed: --check=all reads back every tensor."`
	Seed      uint64      `placeholder:"N" help:"Another choice of what --check writes and reads."`
	Histogram bool        `help:"Print how many requests took how long."`
	JSON      bool        `name:"json" help:"Print all that is known, as JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *replayCmd) Help() string {
	return "Example: gmstitch replay --alloc stitch,torch --histogram job.parquet\n\n" +
		"The requests are made as fast as they are answered: the job itself does no work. What driver calls take is compared with " +
		"what gmbench would have said. With --check it includes waiting for what is written."
}

// check is the flag of that name: with no value, or one of sample, all and none.
type check live.Check

// IsBool implements kong.BoolMapper: the flag needs no value.
func (c *check) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (c *check) Decode(ctx *kong.DecodeContext) error {
	*c = check(live.CheckSample)
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	text := ctx.Scan.Pop().String()
	i := slices.Index([]string{"none", "sample", "all"}, text)
	if i < 0 {
		return fmt.Errorf("%q is none of none, sample and all", text)
	}
	*c = check(i)
	return nil
}

// Run implements the command.
func (cmd *replayCmd) Run(c *cli.Context) error {
	specs, err := cmd.specs()
	if err != nil {
		return err
	}
	options := live.Options{Capacity: int64(cmd.Capacity), Costs: sim.H200(), Check: live.Check(cmd.Check), Seed: cmd.Seed}
	if cmd.Costs != "" {
		measured, err := sim.ReadCalibration(cmd.Costs)
		if err != nil {
			return err
		}
		options.Costs = measured.Costs
	}
	programs, err := cmd.load(c)
	if err != nil {
		return err
	}
	gpu, err := cmd.open()
	if err != nil {
		return err
	}
	runs, err := replayAll(c, gpu, programs, specs, options)
	if err = errors.Join(err, gpu.close()); err != nil {
		return err
	}
	if err := cmd.print(c.Out, runs); err != nil {
		return err
	}
	return wrong(c, runs)
}

// specs returns the allocators.
func (cmd *replayCmd) specs() ([]bench.Spec, error) {
	text := strings.Join(cmd.Alloc, ",")
	if text == "" {
		text = "stitch,torch,expandable,gmlake"
	}
	specs, err := bench.ParseSpecs(text)
	if err != nil {
		return nil, cli.Usage("--alloc: %v", err)
	}
	for _, s := range specs {
		if s.Imaginary {
			return nil, cli.Usage("--alloc: %s is a bound, and hands out no memory", s.Name)
		}
	}
	return specs, nil
}

// target is what a replay runs on.
type target struct {
	live.GPU
	name  string
	sim   bool
	close func() error
}

func (cmd *replayCmd) open() (target, error) {
	if cmd.Device == "sim" {
		return target{live.NewSimulated(), "a simulated GPU", true, func() error { return nil }}, nil
	}
	ordinal, err := strconv.ParseUint(cmd.Device, 10, 16)
	if err != nil {
		return target{}, cli.Usage("--device: %q is neither the number of a GPU nor sim", cmd.Device)
	}
	l, err := driver.Load()
	if err != nil {
		return target{}, err
	}
	d, err := l.Open(int(ordinal))
	if err != nil {
		return target{}, err
	}
	return target{d, fmt.Sprintf("GPU %d, %s", ordinal, d.Name()), false, d.Close}, nil
}

// liveRun is one program through one allocator.
type liveRun struct {
	program *replay.Program
	alloc   string
	target  *target
	options *live.Options
	*live.Result
}

// replayAll runs every program through every allocator.
func replayAll(c *cli.Context, gpu target, programs []*replay.Program, specs []bench.Spec, o live.Options) ([]liveRun, error) {
	var steps int64
	for _, p := range programs {
		steps += int64(p.Steps() * len(specs))
	}
	progress := c.Progress("replay", steps)
	defer progress.End()
	o.Done = func() { progress.Add(1) }
	var runs []liveRun
	for _, p := range programs {
		for i, spec := range specs {
			run := o
			run.Seed = o.Seed*uint64(len(specs)) + uint64(i) // what another allocator left is not taken for what was written
			res, err := live.Run(c.Context(), p, gpu.GPU, run, func(dev cuda.Device) (blocks.Allocator, error) {
				return spec.Make(c.Context(), p, dev)
			})
			if err != nil {
				return nil, fmt.Errorf("allocator %s: %w", spec.Text, err)
			}
			runs = append(runs, liveRun{p, spec.Text, &gpu, &o, res})
		}
	}
	return runs, nil
}

func (cmd *replayCmd) load(c *cli.Context) ([]*replay.Program, error) {
	name := cmd.File
	if name == "" {
		name = "-"
	}
	if err := cli.CheckFiles([]string{name, cmd.Costs}, nil); err != nil {
		return nil, err
	}
	source, err := input.Open(c, name)
	if err != nil {
		return nil, err
	}
	programs, err := replay.Read(source)
	if err != nil {
		return nil, err
	}
	programs = slices.DeleteFunc(programs, func(p *replay.Program) bool { return len(p.Sizes) == 0 })
	if len(programs) == 0 {
		return nil, fmt.Errorf("%s: holds no allocations of a framework", name)
	}
	for _, p := range programs {
		p.Name = strings.Replace(filepath.Base(p.Name), ".parquet", "", 1)
		if p.Partial || len(p.Initial) > 0 {
			c.Warn("%s: a plan of a part, or a recording that began midway: what was there before is requested anew", p.Name)
		}
	}
	return programs, nil
}

// wrong says which tensors did not hold what was written, and returns an error if there are any.
func wrong(c *cli.Context, runs []liveRun) error {
	var errs []error
	for i := range runs {
		r := &runs[i]
		for m := range r.Checked.Mismatches {
			c.Note("%s: allocator %s: %v", r.program.Name, r.alloc, &r.Checked.Mismatches[m])
		}
		if n := r.Checked.Wrong; n > 0 {
			errs = append(errs, fmt.Errorf("%s: allocator %s: %d of %d tensors do not hold what was written",
				r.program.Name, r.alloc, n, r.Checked.Tensors))
		}
	}
	return errors.Join(errs...)
}
