// Gmstitch runs PyTorch programs, unchanged, on a GPU memory allocator that leaves no memory unused between blocks.
//
// See gmstitch --help, and docs/gmstitch.md.
package main

import (
	"os"

	"gm/internal/cli"
	_ "gm/internal/glibc"
	"gm/internal/libgm/planner"
)

type grammar struct {
	Run  runCmd  `cmd:"" help:"Run a program on the stitching allocator."`
	Stat statCmd `cmd:"" help:"Show what the allocator of a running program holds."`

	Replay replayCmd `cmd:"" help:"Replay a trace through allocators on a GPU, and measure them."`
}

func main() {
	if planner.Asked(os.Args) { // by a run of this tool, or by libgm.so itself
		os.Exit(planner.Main())
	}
	os.Exit(cli.Tool{
		Name:    "gmstitch",
		Help:    "Run PyTorch programs on a GPU memory allocator that stitches free pieces together.\n\nExample: gmstitch run -- python train.py",
		Grammar: &grammar{},
	}.Main(os.Args[1:]))
}
