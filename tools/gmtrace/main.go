// Gmtrace makes traces of GPU memory allocations and shows what is in them.
//
// See gmtrace --help, and docs/gmtrace.md.
package main

import (
	"os"

	"gm/internal/cli"
)

type grammar struct {
	Run     runCmd     `cmd:"" help:"Run a program and record what it does with GPU memory."`
	Recover recoverCmd `cmd:"" help:"Make traces of what a gmtrace run that was killed, or could not write, had recorded."`
	Import  importCmd  `cmd:"" help:"Turn a PyTorch memory snapshot, or another allocator's log, into a trace."`
	Top     topCmd     `cmd:"" help:"Show what lives in the GPU memory of a running program."`
	Synth   synthCmd   `cmd:"" help:"Make the trace of training a transformer from its shape."`
	Show    showCmd    `cmd:"" help:"Say what a trace holds: its peak and what lives there, streams, sizes, iterations; as text, a profile for pprof or a picture."`
	Diff    diffCmd    `cmd:"" help:"Say what changed between two traces, or two iterations of one, and what leaks."`
	Export  exportCmd  `cmd:"" help:"Write a trace for other tools: a PyTorch snapshot, CSV, an RMM log, STAlloc text, Perfetto."`
}

func main() {
	os.Exit(cli.Tool{
		Name: "gmtrace",
		Help: "Make traces of GPU memory allocations, and show what is in them. A trace is a Parquet file; see formats/README.md.\n\n" +
			"Example: gmtrace import snapshot.pickle | gmtrace show",
		Grammar: &grammar{},
	}.Main(os.Args[1:]))
}
