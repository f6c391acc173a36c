package main

import (
	"errors"

	"gm/internal/capture"
	"gm/internal/capture/top"
	"gm/internal/cli"
	"gm/internal/cli/command"
)

// runProgram implements --run.
func (cmd *topCmd) runProgram(c *cli.Context) error {
	if len(cmd.Words) == 0 {
		return cli.Usage("no command to run: gmtrace top --run -- COMMAND")
	}
	if cmd.Output == "-" {
		return cli.Usage("the page takes standard output: name a file for the trace")
	}
	recording := runCmd{Output: cmd.Output, Stacks: cmd.Stacks, Marks: cmd.Marks}
	options, err := recording.options(c)
	if err != nil {
		return cli.Usage("%v", err)
	}
	if cmd.Output != "" {
		if err := capture.CheckOutput(cmd.Output); err != nil {
			return err
		}
	}
	p := top.NewProgram(cmd.Words)
	options.Warn = p.Warn
	session, err := newSession(options)
	if err != nil {
		return err
	}
	defer command.KeepFromPipe()()
	status, err := cmd.showProgram(c, session, p)
	if cmd.Output == "" { // without -o, only the page is wanted
		err = errors.Join(err, session.Close())
	} else {
		err = conclude(c, session, err)
	}
	if err != nil {
		return err
	}
	return status
}

// showProgram runs the program while it shows the page, and writes traces. It returns the program's exit status.
func (cmd *topCmd) showProgram(c *cli.Context, s *capture.Session, p *top.Program) (cli.Status, error) {
	last, status, err := p.Run(c, s, !cmd.Once && !cmd.JSON && isTerminal(c.Out))
	if failed := (*command.StartError)(nil); errors.As(err, &failed) {
		c.Fail(failed)
		return cli.Status(failed.Status()), nil
	} else if err != nil {
		return 0, err
	}
	if cmd.JSON {
		err = cli.WriteJSON(c.Out, s.View())
	} else if last != nil {
		err = last.Print()
	}
	return cli.Status(status), errors.Join(err, cmd.writeTraces(c, s), p.Conclude(c))
}

// writeTraces writes the requested traces.
func (cmd *topCmd) writeTraces(c *cli.Context, s *capture.Session) error {
	if cmd.Output == "" {
		return nil
	}
	outputs, err := s.Outputs(cmd.Output)
	if err != nil {
		return err
	}
	if len(outputs) == 0 {
		c.Warn("%s", noTrace)
	}
	return writeAll(c, outputs)
}
