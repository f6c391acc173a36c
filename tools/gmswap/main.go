// Gmswap runs PyTorch programs, unchanged, in less GPU memory: what is saved for the backward pass waits in host memory meanwhile.
//
// See gmswap --help, and docs/gmswap.md.
package main

import (
	"os"

	"gm/internal/cli"
)

type grammar struct {
	Run runCmd `cmd:"" help:"Run a program with its saved tensors moved to the host and back."`
}

func main() {
	os.Exit(cli.Tool{
		Name:    "gmswap",
		Help:    "Run PyTorch programs in less GPU memory: tensors wait in host memory, by a schedule.\n\nExample: gmswap run -m 40GiB -- python train.py",
		Grammar: &grammar{},
	}.Main(os.Args[1:]))
}
