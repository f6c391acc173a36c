package page

import (
	"errors"
	"fmt"
	"strings"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/changes"
	"gm/internal/trace/failure"
	"gm/internal/trace/overview"
	"gm/internal/trace/text"
	"gm/internal/units"
)

// Note is a paragraph above the charts, about one GPU.
type Note struct {
	Device int32
	Text   string // printable
}

// everyDevice is the device of a note about all GPUs.
const everyDevice = -1

// notesOf says why requests failed, and what leaks.
func notesOf(source *column.Source, o *overview.Overview) ([]Note, error) {
	failures, err := trace.ReadSource(source, func(r *trace.Reader) ([]*failure.Failure, error) { return failure.Read(r, o) })
	if err != nil {
		return nil, err
	}
	var notes []Note
	for _, f := range failures {
		why := fmt.Sprintf("Out of memory on GPU %d, row %d, for %s. %s", f.Device, f.Row, units.Bytes(f.Size), strings.Join(text.Verdict(f), " "))
		notes = append(notes, Note{f.Device, report.Printable(why)})
	}
	leaks, err := changes.Leaks(source, o)
	if errors.Is(err, changes.ErrTooMany) {
		return append(notes, Note{everyDevice, report.Printable(fmt.Sprintf("Leaks are not known: %v.", err))}), nil
	}
	if err != nil {
		return nil, err
	}
	var lines strings.Builder
	text.Leaks(&lines, leaks)
	for i, line := range strings.Split(lines.String(), "\n")[:len(leaks)] {
		notes = append(notes, Note{leaks[i].Device, line})
	}
	return notes, nil
}
