// Gmtrace records, imports, analyzes and exports traces of GPU memory allocations.
//
// See gmtrace --help, and docs/gmtrace.md.
package main

import (
	"os"

	"gm/internal/cli"
	_ "gm/internal/glibc"
)

type grammar struct {
	Run     runCmd     `cmd:"" help:"Run a program and record what it does with GPU memory."`
	Recover recoverCmd `cmd:"" help:"Write the traces of a gmtrace run that was killed or could not write them."`
	Import  importCmd  `cmd:"" help:"Turn a PyTorch memory snapshot, or another allocator's log, into a trace."`
	Top     topCmd     `cmd:"" help:"Show what is live in the GPU memory of a running program, or who uses the GPUs."`
	Synth   synthCmd   `cmd:"" help:"Generate the trace of training a transformer from its shape."`
	Show    showCmd    `cmd:"" help:"Summarize a trace: its peak and what is live then, streams, sizes, iterations; as text, a profile for pprof or a picture."`
	Page    pageCmd    `cmd:"" help:"Make a page for the browser: every tensor over time and at its address, its tag and its stack, and who holds the memory when."`
	WhyOOM  whyOOMCmd  `cmd:"" name:"why-oom" help:"Say why a program ran out of GPU memory: full, fragmented or limited; who held the memory, and what would have helped."`
	Diff    diffCmd    `cmd:"" help:"Compare two traces, or two iterations of one trace, and find leaks."`
	Summary summaryCmd `cmd:"" help:"Add one row a job and rank to a dataset in Parquet: peaks, what is lost and why, tags, stacks, settings that help."`
	Tag     tagCmd     `cmd:"" help:"Write a trace with what its allocations are for, where it does not say so: parameters, gradients, activations."`
	Export  exportCmd  `cmd:"" help:"Convert a trace for other tools: PyTorch snapshot, CSV, RMM log, STAlloc text, Perfetto, a table of tensors with their tags."`
}

func main() {
	os.Exit(cli.Tool{
		Name: "gmtrace",
		Help: "Make traces of GPU memory allocations, and show what is in them. A trace is a Parquet file; see formats/README.md in share/doc/gm.\n\n" +
			"Example: gmtrace import snapshot.pickle | gmtrace show",
		Grammar: &grammar{},
	}.Main(os.Args[1:]))
}
