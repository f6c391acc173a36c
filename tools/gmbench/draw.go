package main

import (
	"io"

	"gm/internal/bench"
	"gm/internal/cli"
	"gm/internal/report"
)

// draw writes the pictures that were asked for.
func (cmd *compareCmd) draw(c *cli.Context, rows []bench.Row) error {
	for _, picture := range []struct {
		path  string
		write func(io.Writer, []report.Chart) error
	}{{cmd.PNG, report.WritePNG}, {cmd.SVG, report.WriteSVG}} {
		if picture.path == "" {
			continue
		}
		err := c.File(picture.path, func(w io.Writer) error { return picture.write(w, charts(rows)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// charts makes one chart a trace: live bytes as an area, reserved bytes as a line for each allocator.
func charts(rows []bench.Row) []report.Chart {
	var all []report.Chart
	for first := 0; first < len(rows); {
		end := first + 1
		for end < len(rows) && rows[end].Trace == rows[first].Trace {
			end++
		}
		all = append(all, chart(rows[first:end]))
		first = end
	}
	return all
}

// chart draws the rows of one trace. Those that reserve what is live and no more are the edge of the area, and named there.
func chart(rows []bench.Row) report.Chart {
	live := rows[0].Curve()
	c := report.Chart{
		Title: rows[0].Trace + ": memory reserved by each allocator",
		Lines: []report.Line{{Name: "live", TimeNS: live.TimeNS, Bytes: live.Allocated, Filled: true}},
	}
	for i := range rows {
		curve := rows[i].Curve()
		if rows[i].Allocator == "floor" || rows[i].Allocator == "native" {
			c.Lines[0].Name += ", " + rows[i].Allocator
			continue
		}
		c.Lines = append(c.Lines, report.Line{Name: rows[i].Allocator, TimeNS: curve.TimeNS, Bytes: curve.Reserved})
	}
	return c
}
