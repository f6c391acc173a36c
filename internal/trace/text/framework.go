package text

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/guptarohit/asciigraph"

	"gm/internal/report"
	"gm/internal/trace/iterations"
	"gm/internal/trace/overview"
	"gm/internal/units"
)

// showFramework prints what a framework's allocator did on a device.
func showFramework(w *strings.Builder, o *overview.Overview, d *overview.Device) error {
	line(w, "allocs", "%d, %d of them never freed", d.Allocs, d.Unfreed)
	line(w, "peak live", "%s at row %d, after %s", exact(d.PeakLive), d.PeakRow, after(o, d.PeakNS))
	if d.PeakReserved > 0 {
		line(w, "reserved", "%s at the peak", exact(d.PeakReserved))
	}
	for i, oom := range d.OOMs {
		if i == maxFailures {
			line(w, "OOM", "and %d more, see --json", len(d.OOMs)-i)
			break
		}
		line(w, "OOM", "at row %d: %s requested%s", oom.Row, units.Bytes(oom.Size), free(oom.Free))
	}
	if len(d.Pools) > 0 {
		line(w, "pools", "private: %s", strings.Join(d.Pools, ", "))
	}
	line(w, "iterations", "%s", iterationsLine(d, len(o.Steps)))
	if err := showTables(w, d); err != nil {
		return err
	}
	showCurve(w, d.Curve(o.StartNS, o.EndNS, graphWidth), d.PeakLive, "live")
	return nil
}

// maxFailures is the most failed requests that are listed, for one level on one device.
const maxFailures = 5

func iterationsLine(d *overview.Device, steps int) string {
	spans, text := d.Iterations, "none found"
	if n := len(spans); n > 0 {
		by := "found"
		if d.Marked {
			by = "by marks"
		}
		text = fmt.Sprintf("%d %s, rows %d to %d", n, by, spans[0].First, spans[n-1].End)
	}
	if d.Marked {
		return text
	}
	if d.Allocs > iterations.MaxRequests {
		text += fmt.Sprintf(", of the first %d allocs", iterations.MaxRequests)
	}
	if steps > 0 {
		text += fmt.Sprintf("; marks: %s", units.Count(steps, "step"))
	}
	return text
}

func showTables(w io.Writer, d *overview.Device) error {
	streams := report.Table{Titles: []string{"stream", "allocs", "peak live"}}
	for _, s := range d.Streams {
		streams.Add(strconv.FormatInt(s.Handle, 10), strconv.FormatInt(s.Allocs, 10), units.Bytes(s.PeakLive).String())
	}
	sizes := report.Table{Titles: []string{"largest sizes", "bytes", "times"}}
	for _, s := range d.Largest {
		sizes.Add(units.Bytes(s.Bytes).String(), strconv.FormatInt(s.Bytes, 10), strconv.FormatInt(s.Count, 10))
	}
	return writeTables(w, &streams, &sizes)
}

// writeTables prints the tables that have rows, each after an empty line.
func writeTables(w io.Writer, tables ...*report.Table) error {
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

// The size of a curve, in characters.
const (
	graphWidth  = 64
	graphHeight = 12
)

// showCurve draws bytes over time.
func showCurve(w *strings.Builder, bytes []float64, peak int64, what string) {
	unit, name := units.Bytes(peak).Unit()
	for i := range bytes {
		bytes[i] /= unit
	}
	fmt.Fprintf(w, "\n%s\n", asciigraph.Plot(bytes, asciigraph.Height(graphHeight), asciigraph.LowerBound(0), asciigraph.Precision(2),
		asciigraph.Caption(what+" "+name+" over time")))
}
