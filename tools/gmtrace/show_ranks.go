package main

import (
	"errors"
	"io"
	"path/filepath"
	"strings"

	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/trace/ranks"
	"gm/internal/trace/text"
)

// ranks shows the ranks of a job.
func (cmd *showCmd) ranks(c *cli.Context) error {
	if cmd.Top > 0 || cmd.At.set || cmd.Pprof != "" || cmd.From.set || cmd.To.set || cmd.Iteration != nil || cmd.By == byStackFlag || cmd.Axis == rowsFlag {
		return cli.Usage("%s is the folder of a job: --json, --png and --svg go with it; for the rest name the trace of one rank", cmd.File)
	}
	j, t, err := readRanks(c, cmd.File)
	if err != nil {
		return err
	}
	switch {
	case cmd.Pictures.Any():
		chart := []report.Chart{t.Chart("live bytes of the ranks in " + filepath.Base(j.Folder))}
		err = cmd.Pictures.Write(c.Binary,
			func(w io.Writer) error { return report.WritePNG(w, chart) },
			func(w io.Writer) error { return report.WriteSVG(w, chart) })
	case cmd.JSON:
		err = cli.WriteJSON(c.Out, t)
	default:
		var out strings.Builder
		if err = text.Ranks(&out, t); err == nil {
			_, err = io.WriteString(c.Out, out.String())
		}
	}
	return errors.Join(err, j.Incomplete())
}

// readRanks reads all traces of a job. It warns of what is missing and what is left out.
func readRanks(c *cli.Context, folder string) (*ranks.Job, *ranks.Table, error) {
	j, err := ranks.Open(folder)
	if err != nil {
		return nil, nil, err
	}
	progress := c.Progress("read ranks", int64(len(j.Members)))
	t, err := j.Read(c.Context(), func() { progress.Add(1) })
	progress.End()
	if err != nil {
		return nil, nil, err
	}
	for _, problem := range j.Problems() {
		c.Warn("%s: %s", folder, problem)
	}
	return j, t, nil
}
