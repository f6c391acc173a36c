package picture

import (
	"strconv"

	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/overview"
)

// rowsOfMarks returns the rows at which something is marked: failed requests, and the beginnings of iterations.
func rowsOfMarks(o *overview.Overview) map[int64]bool {
	rows := map[int64]bool{}
	for _, d := range o.Devices {
		for _, oom := range d.OOMs {
			rows[oom.Row] = true
		}
		for _, section := range d.Iterations {
			rows[section.First] = true
		}
	}
	return rows
}

// timesOf returns the times of rows of a trace, in nanoseconds.
func timesOf(r *trace.Reader, rows map[int64]bool) (map[int64]int64, error) {
	times := map[int64]int64{}
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if rows[row] {
			times[row] = e.TimeNS
		}
		return nil
	})
	return times, err
}

// mostIterations is the most iterations that are marked: more would hide what is drawn.
const mostIterations = 60

// marks returns the marks of a device, whose rows have these times.
func marks(o *overview.Overview, l *overview.Timeline, times map[int64]int64) []report.Mark {
	var all []report.Mark
	at := func(row int64) float64 { return float64(times[row]-l.StartNS) / 1e9 }
	for _, d := range o.Devices {
		if d.Ordinal != l.Device {
			continue
		}
		for _, oom := range d.OOMs {
			all = append(all, report.Mark{Seconds: at(oom.Row), Name: "OOM", Alarm: true})
		}
		for i, section := range d.Iterations {
			if len(d.Iterations) <= mostIterations {
				all = append(all, report.Mark{Seconds: at(section.First), Name: strconv.Itoa(i)})
			}
		}
	}
	return all
}
