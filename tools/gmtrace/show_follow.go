package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"gm/internal/capture/live"
	"gm/internal/capture/top"
	"gm/internal/cli"
	"gm/internal/cli/command"
)

// follow shows the state of a capture each second, until it ends, and then its trace. A complete trace is shown at once.
func (cmd *showCmd) follow(c *cli.Context) error {
	if cmd.Top > 0 || cmd.At.set || cmd.Pprof != "" || cmd.Pictures.Any() {
		return cli.Usage("--follow goes only with --json: everything else is known only at the end of the capture")
	}
	f, err := cmd.followed(c)
	if err != nil {
		return err
	}
	if f == nil {
		return cmd.whole(c)
	}
	if isTerminal(c.Out) && !cmd.JSON {
		v := f.viewer(c)
		if err := v.Watch(); err != nil {
			return err
		}
	} else if err := f.print(c, cmd.JSON); err != nil {
		return err
	}
	if cmd.File = f.output; cmd.JSON || !isFile(f.output) {
		return nil
	}
	return cmd.whole(c)
}

// whole shows a complete trace.
func (cmd *showCmd) whole(c *cli.Context) error {
	cmd.Follow = false
	return cmd.Run(c)
}

// followed is a capture, and the process of it to show.
type followed struct {
	top.Capture
	pid    int    // of the requested process
	output string // the requested output; "" before it is known
}

// followed finds the capture that writes the file or, if there is no such file, the capture of the process of that number; without a
// name, the only capture. It returns nil if the file exists and no capture writes it.
func (cmd *showCmd) followed(c *cli.Context) (*followed, error) {
	if cmd.File == "" {
		found, err := top.Find(c, 0)
		return &followed{Capture: found}, err
	}
	output := fromRoot(cmd.File)
	for _, found := range top.Captures([]string{command.TempDir()}) {
		if found.View.Output == output || writerOf(found.View, output) != nil {
			return &followed{Capture: found, output: output}, nil
		}
	}
	if info, err := os.Stat(cmd.File); err == nil && !info.IsDir() {
		return nil, nil
	}
	pid, err := strconv.Atoi(cmd.File)
	if err != nil || pid <= 0 {
		return nil, fmt.Errorf("%s: there is no such file, and no running capture writes it", cmd.File)
	}
	found, err := top.Find(c, pid)
	return &followed{Capture: found, pid: pid}, err
}

// writerOf returns the process whose trace will be written to a file, nil for none.
func writerOf(view *live.View, output string) *live.Process {
	for i := range view.Processes {
		if p := &view.Processes[i]; p.Output != "" && p.Output == output {
			return p
		}
	}
	return nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func (f *followed) viewer(c *cli.Context) *top.Viewer {
	v := top.New(c, f.Folder)
	f.look(v, f.View)
	return v
}

// look updates the state from a view.
func (f *followed) look(v *top.Viewer, view *live.View) {
	v.Show(view)
	if f.output == "" {
		v.Choose(f.pid)
		if p := v.Chosen(); p != nil {
			f.output = p.Output
		}
	} else if p := writerOf(view, f.output); p != nil {
		v.Choose(p.PID)
	}
}

// print prints a page, or a line of JSON, each second.
func (f *followed) print(c *cli.Context, asJSON bool) error {
	v := f.viewer(c)
	tick := time.NewTicker(top.Refresh)
	defer tick.Stop()
	for {
		if err := f.printOnce(c, v, asJSON); err != nil {
			return err
		}
		<-tick.C
		view, err := v.Ask()
		switch {
		case err == nil:
			f.look(v, view)
		case errors.Is(err, live.ErrEnded):
			return nil
		case !errors.Is(err, live.ErrBusy): // the capture is busy while it writes the trace
			return err
		}
	}
}

func (f *followed) printOnce(c *cli.Context, v *top.Viewer, asJSON bool) error {
	if asJSON {
		return cli.WriteJSONLine(c.Out, v.Shown())
	}
	if err := v.Print(); err != nil {
		return err
	}
	_, err := io.WriteString(c.Out, "\n")
	return err
}
