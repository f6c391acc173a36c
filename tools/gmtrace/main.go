// Gmtrace makes traces of GPU memory allocations and shows what is in them.
//
// See gmtrace --help, and docs/gmtrace.md.
package main

import (
	"os"

	"gm/internal/cli"
)

type grammar struct {
	Run    runCmd    `cmd:"" help:"Run a program and record what it does with GPU memory."`
	Import importCmd `cmd:"" help:"Turn a PyTorch memory snapshot, or another allocator's log, into a trace."`
	Top    topCmd    `cmd:"" help:"Show what lives in the GPU memory of a running program."`
	Show   showCmd   `cmd:"" help:"Say what a trace holds: its peak, its streams, its largest sizes, its iterations."`
}

func main() {
	os.Exit(cli.Tool{
		Name: "gmtrace",
		Help: "Make traces of GPU memory allocations, and show what is in them. A trace is a Parquet file; see formats/README.md.\n\n" +
			"Example: gmtrace import snapshot.pickle | gmtrace show",
		Grammar: &grammar{},
	}.Main(os.Args[1:]))
}
