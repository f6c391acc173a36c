package main

import (
	"os"
	"strconv"

	"golang.org/x/term"

	"gm/internal/capture/top"
	"gm/internal/cli"
)

type topCmd struct {
	Words  []string `arg:"" optional:"" name:"pid" help:"A process that is captured, or the gmtrace that captures it. Not needed if one capture runs. With --run: the program to run, and its arguments."`
	Start  bool     `name:"run" help:"Run a program and show that."`
	Once   bool     `help:"Print one page as plain text. That is also what a pipe or a file gets."`
	JSON   bool     `name:"json" help:"Print all that is known once, as JSON."`
	Output string   `short:"o" placeholder:"FILE" help:"With --run: write traces, as gmtrace run does. None by default."`
	Stacks string   `enum:"none,python,native,both" default:"python" help:"With --run: record who asked, as gmtrace run does. (${enum})"`
	Marks  string   `placeholder:"MODULE:FUNCTION" help:"With --run: what ends an iteration, as for gmtrace run."`
}

// Help implements kong.HelpProvider.
func (cmd *topCmd) Help() string {
	return "Shows what lives now in GPU memory, and its peak, by stack, stream and kind, of a program that gmtrace run runs.\n\n" +
		"Example: gmtrace run -o job.parquet --stacks python -- python train.py & gmtrace top\n\n" +
		"Example: gmtrace top --run -- python train.py\n\n" +
		"Keys: tab and the arrows choose the process; k, s and t show stacks, streams and tags; q quits. " +
		"With --run, q leaves the page and the program goes on; Ctrl-C interrupts it."
}

// Run implements the command.
func (cmd *topCmd) Run(c *cli.Context) error {
	if cmd.Start {
		return cmd.runProgram(c)
	}
	pid, err := cmd.pid()
	if err != nil {
		return err
	}
	found, err := top.Find(c, pid)
	if err != nil {
		return err
	}
	v := top.New(c, found.Folder)
	v.Show(found.View)
	v.Choose(pid)
	if cmd.JSON {
		return cli.WriteJSON(c.Out, found.View)
	}
	if cmd.Once || !isTerminal(c.Out) {
		return v.Print()
	}
	return v.Watch()
}

// pid checks the command line of all but --run, and returns the PID, 0 if there is none.
func (cmd *topCmd) pid() (int, error) {
	switch {
	case cmd.Output != "" || cmd.Marks != "":
		return 0, cli.Usage("what is recorded is said to gmtrace run, or after --run")
	case len(cmd.Words) == 0:
		return 0, nil
	case len(cmd.Words) > 1:
		return 0, cli.Usage("expected one PID; to run a program: gmtrace top --run -- COMMAND")
	}
	pid, err := strconv.Atoi(cmd.Words[0])
	if err != nil || pid <= 0 {
		return 0, cli.Usage("%q is no PID; to run a program: gmtrace top --run -- COMMAND", cmd.Words[0])
	}
	return pid, nil
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
