package main

import (
	"fmt"
	"strconv"
	"time"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/overview"
	"gm/internal/trace/picture"
)

// momentFlag is a moment of a trace: a time from its first row, or the number of a row.
type momentFlag struct {
	set    bool
	number int64
	after  time.Duration
	timed  bool // it is a time
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *momentFlag) UnmarshalText(text []byte) error {
	f.set = true
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil && n >= 0 {
		f.number = n
		return nil
	}
	f.timed = true
	if f.after, err = time.ParseDuration(string(text)); err != nil || f.after < 0 {
		return fmt.Errorf("%q is neither a time such as 1.5s nor the number of a row", text)
	}
	return nil
}

// check returns an error if the moment, of the flag of that name, is not in the trace.
func (f *momentFlag) check(name string, o *overview.Overview) error {
	switch {
	case !f.set:
	case o.Rows == 0:
		return cli.Usage("%s: the trace has no rows", name)
	case f.timed && int64(f.after) > o.EndNS-o.StartNS:
		return cli.Usage("%s: the trace ends after %s", name, time.Duration(o.EndNS-o.StartNS))
	case !f.timed && f.number >= o.Rows:
		return cli.Usage("%s: the trace has rows 0 to %d", name, o.Rows-1)
	}
	return nil
}

// row returns the row to show, nil if --at is not given.
func (f *momentFlag) row(source *column.Source, o *overview.Overview) (*int64, error) {
	if err := f.check("--at", o); err != nil || !f.set {
		return nil, err
	}
	row := f.number
	if f.timed {
		var err error
		row, err = trace.ReadSource(source, func(r *trace.Reader) (int64, error) { return overview.RowAt(r, o.StartNS+int64(f.after)) })
		if err != nil {
			return nil, err
		}
	}
	return &row, nil
}

// bound returns the moment as the bound of a picture, nil if it is not given.
func (f *momentFlag) bound() *picture.Moment {
	if !f.set {
		return nil
	}
	return &picture.Moment{Timed: f.timed, After: f.after, Row: f.number}
}
