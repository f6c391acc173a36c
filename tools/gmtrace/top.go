package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/term"

	"gm/internal/capture/top"
	"gm/internal/cli"
)

type topCmd struct {
	Words  []string `arg:"" optional:"" name:"pid" help:"The PID of a captured process, or of the gmtrace that captures it. Only needed if several captures run. With --run: the program to run, and its arguments."`
	Start  bool     `name:"run" help:"Run a program and show it."`
	Once   bool     `help:"Print one page as plain text, as for output to a pipe or a file."`
	JSON   bool     `name:"json" help:"Print the full state once, as JSON."`
	Output string   `short:"o" placeholder:"FILE" help:"With --run: write traces, as gmtrace run does. No traces by default."`
	Stacks string   `enum:"none,python,native,both" default:"python" help:"With --run: record stacks, as gmtrace run does. (${enum})"`
	Marks  string   `placeholder:"MODULE:FUNCTION" help:"With --run: the function that ends an iteration, as for gmtrace run."`
}

// Help implements kong.HelpProvider.
func (cmd *topCmd) Help() string {
	return "Shows the live GPU memory of a program that gmtrace run captures, now and at its peak, by stack, stream and kind. " +
		"If no capture is running, it shows what NVML knows of all processes on the GPUs, and which of them gm serves.\n\n" +
		"Example: gmtrace run -o job.parquet --stacks python -- python train.py & gmtrace top\n\n" +
		"Example: gmtrace top --run -- python train.py\n\n" +
		"Keys: tab and the arrows choose the process; k, s and t show stacks, streams and tags; q quits. " +
		"With --run, q closes the page and the program continues; Ctrl-C interrupts the program."
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
	if errors.Is(err, top.ErrNone) {
		return cmd.machine(c, err)
	} else if err != nil {
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

// machine shows all processes on the GPUs. none says that no capture is running.
func (cmd *topCmd) machine(c *cli.Context, none error) (err error) {
	v, err := top.OpenMachine(c)
	if err != nil {
		return fmt.Errorf("%w; other processes are not known: %w", none, err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	switch {
	case cmd.JSON:
		return cli.WriteJSON(c.Out, v.Read())
	case cmd.Once || !isTerminal(c.Out):
		return v.Print()
	}
	return v.Watch()
}

// pid checks the command line without --run, and returns the PID, 0 if there is none.
func (cmd *topCmd) pid() (int, error) {
	switch {
	case cmd.Output != "" || cmd.Marks != "":
		return 0, cli.Usage("give flags about recording to gmtrace run, or together with --run")
	case len(cmd.Words) == 0:
		return 0, nil
	case len(cmd.Words) > 1:
		return 0, cli.Usage("expected one PID; to run a program: gmtrace top --run -- COMMAND")
	}
	pid, err := strconv.Atoi(cmd.Words[0])
	if err != nil || pid <= 0 {
		return 0, cli.Usage("%q is not a PID; to run a program: gmtrace top --run -- COMMAND", cmd.Words[0])
	}
	return pid, nil
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
