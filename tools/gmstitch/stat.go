package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"gm/internal/cli"
	"gm/internal/libgm/page"
)

type statCmd struct {
	PID   int           `arg:"" optional:"" name:"pid" help:"A process. All that run on the allocator, if there is none."`
	JSON  bool          `name:"json" help:"Print all that is known, as JSON."`
	Watch time.Duration `placeholder:"TIME" help:"Print it again and again, such as every 1s, until Ctrl-C or the end of the process."`
}

// Help implements kong.HelpProvider.
func (cmd *statCmd) Help() string {
	return "Example: gmstitch stat --watch 1s\n\n" +
		"Utilisation is the peak of what was handed out, in parts of the peak of what was taken from the device."
}

// Run implements the command.
func (cmd *statCmd) Run(c *cli.Context) error {
	switch {
	case cmd.PID < 0:
		return cli.Usage("%d is no PID", cmd.PID)
	case cmd.Watch < 0:
		return cli.Usage("watch every %v: expected a time such as 1s", cmd.Watch)
	}
	jobs, err := cmd.read(c)
	if err != nil {
		return err
	}
	if cmd.Watch == 0 {
		return cmd.print(c.Out, jobs)
	}
	return cmd.watch(c, jobs)
}

// watch prints until the process, if there is but one, has ended.
func (cmd *statCmd) watch(c *cli.Context, jobs []page.Stats) error {
	for {
		if err := cmd.printAgain(c.Out, jobs); err != nil {
			return err
		}
		time.Sleep(cmd.Watch)
		var err error
		if jobs, err = cmd.read(c); errors.Is(err, page.ErrNone) || errors.Is(err, errNoJobs) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

var errNoJobs = errors.New("no process runs on the allocator: start one with gmstitch run")

// read returns the accounts that the chosen processes show now. Without a choice, those that cannot be read are reported.
func (cmd *statCmd) read(c *cli.Context) ([]page.Stats, error) {
	if cmd.PID != 0 {
		stats, err := page.Read(cmd.PID)
		return []page.Stats{stats}, err
	}
	pids, err := page.List()
	if err != nil {
		return nil, err
	}
	var jobs []page.Stats
	for _, pid := range pids {
		stats, err := page.Read(pid)
		switch {
		case err == nil:
			jobs = append(jobs, stats)
		case !errors.Is(err, page.ErrNone): // which has just ended
			c.Warn("%v", err)
		}
	}
	if len(jobs) == 0 {
		return nil, errNoJobs
	}
	return jobs, nil
}

// printAgain prints over what was there, on a terminal, or below it.
func (cmd *statCmd) printAgain(w io.Writer, jobs []page.Stats) error {
	if !cmd.JSON && isTerminal(w) {
		if _, err := io.WriteString(w, "\033[H\033[J"); err != nil {
			return err
		}
	}
	if err := cmd.print(w, jobs); err != nil || cmd.JSON || isTerminal(w) {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (cmd *statCmd) print(w io.Writer, jobs []page.Stats) error {
	if !cmd.JSON {
		return table(jobs).Write(w)
	}
	out := []job{}
	for i := range jobs {
		out = append(out, describe(&jobs[i]))
	}
	return cli.WriteJSONLine(w, out)
}
