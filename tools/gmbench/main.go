// Gmbench replays the requests of traces and plans through allocators on a simulated GPU and compares what each needs.
//
// See gmbench --help, and docs/gmbench.md.
package main

import (
	"os"
	"strings"

	"gm/internal/bench"
	"gm/internal/cli"
	_ "gm/internal/glibc"
)

type grammar struct {
	Compare   compareCmd   `cmd:"" default:"withargs" help:"Compare allocators on traces and plans (the default). --why shows where each loses memory, --fit which GPUs are large enough."`
	Report    reportCmd    `cmd:"" help:"Write a comparison as one HTML page, with curves and an address map."`
	Tune      tuneCmd      `cmd:"" help:"Find the settings of PyTorch's allocator that take the least memory."`
	Check     checkCmd     `cmd:"" help:"Check that a job needs no more memory than before: exit status 1 if it does, 2 if that cannot be said."`
	Estimate  estimateCmd  `cmd:"" help:"Foretell the memory of a training job from the configuration of its model and how GPUs share it."`
	Sweep     sweepCmd     `cmd:"" help:"Run a matrix of traces and jobs by allocators and capacities, in tasks that may run anywhere."`
	Merge     mergeCmd     `cmd:"" help:"Print the results of a sweep as one table."`
	Verify    verifyCmd    `cmd:"" help:"Check that a replay of PyTorch's allocator does exactly what was recorded."`
	Calibrate calibrateCmd `cmd:"" help:"Measure the costs of driver calls on a GPU of this machine, for --costs."`
}

func main() {
	os.Exit(cli.Tool{
		Name: "gmbench",
		Help: "Replay the allocations of traces and plans through allocators on a simulated GPU, and compare what each needs.\n\n" +
			"Example: gmtrace import snapshot.pickle | gmbench --alloc torch,expandable --capacity 80GiB\n\n" +
			"Allocators:\n\n" + strings.Join(bench.Names(), "\n\n"),
		Grammar: &grammar{},
	}.Main(os.Args[1:]))
}
