// Gmswap makes training steps fit in less GPU memory: it records what a step does, plans what of it waits in host memory meanwhile, and runs
// PyTorch programs, unchanged, by such a plan.
//
// See gmswap --help, and docs/gmswap.md.
package main

import (
	"os"

	"gm/internal/cli"
	_ "gm/internal/glibc"
	"gm/internal/libgm/planner"
	"gm/internal/swap/server/hold"
)

type grammar struct {
	Run       runCmd       `cmd:"" help:"Run a program with its saved tensors moved to the host and back."`
	Record    recordCmd    `cmd:"" help:"Run a program and write what a step of it does as a graph."`
	Net       netCmd       `cmd:"" help:"Make the graph of a network from its shapes."`
	Plan      planCmd      `cmd:"" help:"Make a schedule for a graph within an amount of memory."`
	Check     checkCmd     `cmd:"" help:"Prove that a schedule is right."`
	Simulate  simulateCmd  `cmd:"" aliases:"sim" help:"Simulate a step: its time and peak, what waits for what, a trace for Perfetto."`
	Compare   compareCmd   `cmd:"" aliases:"cmp" help:"Compare policies over a range of amounts of memory."`
	Alpha     alphaCmd     `cmd:"" help:"Say which part of what a transformer's layers save can be copied behind the computation."`
	Serve     serveCmd     `cmd:"" help:"Serve jobs on this machine's GPUs: put them to sleep, wake them, have them take turns."`
	Ctl       ctlCmd       `cmd:"" help:"List the jobs of gmswap serve, put them to sleep and wake them."`
	Bandwidth bandwidthCmd `cmd:"" aliases:"bw" help:"Measure the link between GPUs and host, for --link."`
}

func main() {
	if planner.Asked(os.Args) { // by a run of this tool, or by libgm.so itself
		os.Exit(planner.Main())
	}
	if hold.Asked(os.Args) { // by gmswap serve
		os.Exit(hold.Main())
	}
	os.Exit(cli.Tool{
		Name: "gmswap",
		Help: "Make training steps fit in less GPU memory: what is saved for the backward pass waits in host memory, by a schedule.\n\n" +
			"Example: gmswap run -m 40GiB -- python train.py\n\n" +
			"Example: gmswap net gpt-7b,seq=128Ki > g.parquet; gmswap compare g.parquet; gmswap plan g.parquet -m 60GiB | gmswap simulate g.parquet -",
		Grammar: &grammar{},
	}.Main(os.Args[1:]))
}
