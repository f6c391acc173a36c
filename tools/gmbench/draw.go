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
	for i := range rows {
		curve := rows[i].Curve()
		if i == 0 || rows[i].Trace != rows[i-1].Trace {
			all = append(all, report.Chart{
				Title: rows[i].Trace + ": memory reserved by each allocator",
				Lines: []report.Line{{Name: "live", TimeNS: curve.TimeNS, Bytes: curve.Allocated, Filled: true}},
			})
		}
		if rows[i].Allocator == "floor" {
			continue // its line is the edge of the area
		}
		last := &all[len(all)-1]
		last.Lines = append(last.Lines, report.Line{Name: rows[i].Allocator, TimeNS: curve.TimeNS, Bytes: curve.Reserved})
	}
	return all
}
