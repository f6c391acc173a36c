// Gmplan solves memory layouts: where to put each tensor of a trace, or of a training step, so that as little memory as possible is needed.
//
// See gmplan --help, and docs/gmplan.md.
package main

import (
	"fmt"
	"os"
	"strings"

	"gm/internal/cli"
	"gm/internal/dsa/solvers"
)

type grammar struct {
	Layout layoutCmd `cmd:"" default:"withargs" help:"Solve the layout of a trace and write it as a plan (the default)."`
	Solve  solveCmd  `cmd:"" help:"Solve an instance, a CSV of buffers and their lives, and write it with offsets."`
	Order  orderCmd  `cmd:"" help:"Reorder the operators of a training step, a graph, so that it takes less memory."`
	Step   stepCmd   `cmd:"" help:"Solve the layout of a training step, a graph with or without a schedule, and write it as a plan."`
	Check  checkCmd  `cmd:"" help:"Check a plan, alone or against its trace or step."`
	Show   showCmd   `cmd:"" help:"Summarize a plan, and draw it."`
}

func main() {
	var names []string
	for _, s := range solvers.All() {
		names = append(names, fmt.Sprintf("%s: %s", s.Name, s.About))
	}
	os.Exit(cli.Tool{
		Name: "gmplan",
		Help: "Solve memory layouts: where to put each tensor of a trace, or of a training step, so that as little memory as possible is needed.\n\n" +
			"Example: gmtrace import snapshot.pickle | gmplan | gmplan show --png layout.png\n\n" +
			"Solvers:\n\n" + strings.Join(names, "\n\n"),
		Grammar: &grammar{},
	}.Main(os.Args[1:]))
}
