package main

import (
	"io"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/cli"
	"gm/internal/report"
)

// draw writes the pictures that were requested, with width rows for each trace.
func (cmd *compareCmd) draw(c *cli.Context, programs []*replay.Program, rows []bench.Row, width int) error {
	if n := len(rows) / width; cmd.Pictures.Any() && n > report.MaxCharts {
		c.Warn("the picture shows the first %d of %d traces only", report.MaxCharts, n)
	}
	return cmd.Pictures.Write(c.File,
		func(w io.Writer) error { return report.WritePNG(w, charts(programs, rows, width, int64(cmd.Capacity))) },
		func(w io.Writer) error { return report.WriteSVG(w, charts(programs, rows, width, int64(cmd.Capacity))) })
}

// charts makes one chart for each trace, of width rows: live bytes as an area, reserved bytes as a line for each allocator, the capacity or,
// if it is 0, that of the traced GPU where it is near, and the requests that failed while the trace was recorded.
func charts(programs []*replay.Program, rows []bench.Row, width int, capacity int64) []report.Chart {
	var all []report.Chart
	for i, p := range programs {
		c := chart(rows[i*width:][:width])
		if c.Limit = capacity; capacity == 0 && report.Near(p.Capacity, c.Most()) {
			c.Limit = p.Capacity
		}
		for _, r := range p.Refusals {
			c.FailedNS = append(c.FailedNS, r.TimeNS)
		}
		all = append(all, c)
	}
	return all
}

// chart draws the rows of one trace. Allocators that reserve only what is live are the edge of the area, and are named there.
func chart(rows []bench.Row) report.Chart {
	live := rows[0].Curve()
	c := report.Chart{
		Title: rows[0].Trace + ": memory reserved by each allocator",
		Lines: []report.Line{{Name: "live", TimeNS: live.TimeNS, Bytes: live.Allocated, Filled: true}},
	}
	for i := range rows {
		curve := rows[i].Curve()
		if rows[i].Bound {
			c.Lines[0].Name += ", " + rows[i].Allocator
			continue
		}
		c.Lines = append(c.Lines, report.Line{Name: rows[i].Allocator, TimeNS: curve.TimeNS, Bytes: curve.Reserved, Failed: rows[i].OOM != nil})
	}
	return c
}
