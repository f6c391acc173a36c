package main

import (
	"errors"
	"fmt"

	"gm/internal/capture"
	"gm/internal/cli"
	"gm/internal/cli/command"
	"gm/internal/report"
)

type recoverCmd struct {
	Folder string `arg:"" optional:"" help:"The folder that gmtrace reported or left behind. Only needed if there are several."`
	Output string `short:"o" placeholder:"FILE" help:"Write the traces here, as for gmtrace run."`
}

// Help implements kong.HelpProvider.
func (cmd *recoverCmd) Help() string {
	return "Writes the traces that gmtrace run recorded, if it was killed or could not write them. The folder is not changed.\n\n" +
		"Example: gmtrace recover -o job.parquet /tmp/gmtrace-123456"
}

// Run implements the command.
func (cmd *recoverCmd) Run(c *cli.Context) error {
	if err := capture.CheckPattern(cmd.Output); err != nil {
		return cli.Usage("%v", err)
	}
	if cmd.Output == "" || cmd.Output == "-" {
		if err := c.CheckBinary(); err != nil {
			return err
		}
	} else if err := capture.CheckOutput(cmd.Output); err != nil {
		return err
	}
	folder, err := cmd.folder(c)
	if err != nil {
		return err
	}
	s, err := capture.Recover(folder, c.Warn)
	if err != nil {
		return err
	}
	err = cmd.write(c, s)
	return errors.Join(err, s.Close())
}

func (cmd *recoverCmd) write(c *cli.Context, s *capture.Session) error {
	outputs, err := s.Recovered(cmd.Output)
	if err != nil {
		return err
	}
	if len(outputs) == 0 {
		return fmt.Errorf("recover %s: no process had used CUDA: there is no trace", s.Folder())
	}
	return errors.Join(writeAll(c, outputs), s.Failed())
}

// folder returns the folder to recover: the given one, or the only one that there is.
func (cmd *recoverCmd) folder(c *cli.Context) (string, error) {
	if cmd.Folder != "" {
		return cmd.Folder, nil
	}
	all := capture.Recoverable(command.TempDir())
	switch len(all) {
	case 0:
		return "", fmt.Errorf("in %s there is nothing to recover", command.TempDir())
	case 1:
		return all[0], nil
	}
	list := report.Table{Titles: []string{"folder"}}
	for _, folder := range all {
		list.Add(folder)
	}
	if err := list.Write(c.Err); err != nil {
		return "", err
	}
	return "", fmt.Errorf("%d folders can be recovered: name one", len(all))
}
