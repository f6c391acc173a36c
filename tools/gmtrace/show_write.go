package main

import (
	"errors"
	"io"

	pprof "github.com/google/pprof/profile"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/trace/overview"
	"gm/internal/trace/picture"
	"gm/internal/trace/profile"
	"gm/internal/trace/tags"
)

// check refuses flags that do not go together.
func (cmd *showCmd) check() error {
	switch files := cmd.Pprof != "" || cmd.Pictures.Any(); {
	case files && (cmd.Top > 0 || cmd.JSON):
		return cli.Usage("--pprof, --png and --svg write files and print nothing: leave --top and --json out")
	case cmd.At.set && cmd.Pictures.Any() && cmd.Pprof == "":
		return cli.Usage("leave --at out: --from and --to say what a picture shows")
	case !cmd.Pictures.Any() && (cmd.By == byStackFlag || cmd.Axis == rowsFlag || cmd.From.set || cmd.To.set || cmd.Iteration != nil):
		return cli.Usage("--by, --from, --to, --iteration and --axis are about a picture: name its file with --png or --svg")
	case cmd.Iteration != nil && (cmd.From.set || cmd.To.set):
		return cli.Usage("--iteration says what is drawn: leave --from and --to out")
	case cmd.PNG != "" && cmd.PNG == cmd.SVG, cmd.Pprof != "" && (cmd.Pprof == cmd.PNG || cmd.Pprof == cmd.SVG):
		return cli.Usage("--pprof, --png and --svg need a file each")
	}
	return cli.CheckFiles([]string{cmd.File}, append([]string{cmd.Pprof}, cmd.Pictures.Asked()...))
}

// write writes the requested files.
func (cmd *showCmd) write(c *cli.Context, source *column.Source, o *overview.Overview) error {
	labels, err := trace.ReadSource(source, tags.Derive)
	if err != nil {
		return err
	}
	if cmd.Pprof != "" {
		if err := cmd.writeProfile(c, source, o, labels); err != nil {
			return err
		}
	}
	if !cmd.Pictures.Any() {
		return nil
	}
	return cmd.draw(c, source, o, labels)
}

func (cmd *showCmd) writeProfile(c *cli.Context, source *column.Source, o *overview.Overview, labels *tags.Tags) error {
	at, err := cmd.At.row(source, o)
	if err != nil {
		return err
	}
	p, err := trace.ReadSource(source, func(r *trace.Reader) (*pprof.Profile, error) { return profile.Read(r, o, labels, at) })
	if err != nil {
		return err
	}
	return c.Binary(cmd.Pprof, p.Write)
}

// The values of --by for stacks, and of --axis for rows.
const (
	byStackFlag = "stack"
	rowsFlag    = "rows"
)

// checkBounds returns an error if --from or --to is not in the trace.
func (cmd *showCmd) checkBounds(o *overview.Overview) error {
	if err := cmd.From.check("--from", o); err != nil {
		return err
	}
	return cmd.To.check("--to", o)
}

// draw draws the requested pictures.
func (cmd *showCmd) draw(c *cli.Context, source *column.Source, o *overview.Overview, labels *tags.Tags) error {
	if err := cmd.checkBounds(o); err != nil {
		return err
	}
	pictures, err := picture.Read(source, o, labels, picture.Look{
		ByStack: cmd.By == byStackFlag, Rows: cmd.Axis == rowsFlag, From: cmd.From.bound(), To: cmd.To.bound(), Iteration: cmd.Iteration,
	})
	if errors.Is(err, picture.ErrEmpty) {
		return cli.Usage("--from is after --to")
	}
	if err != nil {
		return err
	}
	return cmd.Pictures.Write(c.Binary,
		func(w io.Writer) error { return report.WriteTimelinesPNG(w, pictures) },
		func(w io.Writer) error { return report.WriteTimelinesSVG(w, pictures) })
}
