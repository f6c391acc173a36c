package main

import (
	"io"
	"slices"
	"strings"

	"gm/internal/bench"
	"gm/internal/bench/page"
	"gm/internal/cli"
	"gm/internal/units"
)

type reportCmd struct {
	inputs `set:"folder=; of a job's ranks the trace of one, not their folder"`
	Output string   `short:"o" required:"" placeholder:"FILE" help:"File for the page, such as report.html."`
	Alloc  []string `placeholder:"NAME[:SETTING=VALUE,...]" sep:"none" help:"Allocators to compare: floor, planned, stitch, expandable and torch by default."`
	Map    string   `default:"torch" placeholder:"NAME" help:"Allocator whose addresses are mapped (${default}), one of --alloc. If it is not among them, the first that can be mapped."`
}

// Help implements kong.HelpProvider.
func (cmd *reportCmd) Help() string {
	return "Example: gmbench report -o report.html job.parquet\n\n" +
		"The page needs only a browser: no network, no other file. It shows the table of compare, reserved and allocated memory over time, which " +
		"you can zoom into, a map of addresses, the causes of lost memory, and the stacks that hold most; and above all why the job failed.\n\n" +
		"It compares allocators. Two runs are compared by gmtrace page --with B A, gmtrace diff A B and, as a gate, gmbench check A B."
}

// Run implements the command.
func (cmd *reportCmd) Run(c *cli.Context) error {
	specs, err := bench.ParseSpecs(cmd.allocators())
	if err != nil {
		return cli.Usage("--alloc: %v", err)
	}
	if _, err := bench.ParseSpecs(cmd.Map); err != nil {
		return cli.Usage("--map: %v", err)
	}
	if err := cli.CheckFiles(append(slices.Clip(cmd.Files), cmd.Costs), []string{cmd.Output}); err != nil {
		return err
	}
	programs, gpu, err := cmd.open(c)
	if err != nil {
		return err
	}
	warn(c, programs)
	if cmd.Capacity == 0 {
		warnOfShares(c, programs, cmd.Alloc)
	}
	progress := c.Progress("replay", int64(len(programs)*len(specs)))
	sections, err := page.Measure(c.Context(), programs, specs, cmd.mapped(specs), gpu, func() { progress.Add(1) })
	progress.End()
	if err != nil {
		return err
	}
	r := page.Report{Title: title(sections), Version: cli.Version(), Capacity: gpu.Capacity, Sections: sections}
	return c.Page(cmd.Output, func(w io.Writer) error { return r.Write(w) })
}

func (cmd *reportCmd) allocators() string {
	if len(cmd.Alloc) == 0 {
		return "floor,planned,stitch,expandable,torch"
	}
	return strings.Join(cmd.Alloc, ",")
}

// mapped returns the number of the allocator whose addresses are shown, -1 if none can be.
func (cmd *reportCmd) mapped(specs []bench.Spec) int {
	if i := slices.IndexFunc(specs, func(s bench.Spec) bool { return s.Text == cmd.Map || s.Name == cmd.Map }); i >= 0 && specs[i].OneAddress {
		return i
	}
	return slices.IndexFunc(specs, func(s bench.Spec) bool { return s.OneAddress })
}

// title names a page after its programs.
func title(sections []*page.Section) string {
	name := sections[0].Name
	if n := len(sections) - 1; n > 0 {
		name += " and " + units.Count(n, "other")
	}
	return "GPU memory of " + name
}
