// Package exporter writes traces in the formats of other tools: the memory snapshots of PyTorch, which its memory_viz page opens, a
// plain CSV, the log of RMM, the text of STAlloc, and the JSON of Chrome's and Perfetto's trace viewers. What of a trace they
// carry, docs/gmtrace.md says.
package exporter

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"gm/formats/trace"
)

// Format is what a trace is written as.
type Format string

// The formats.
const (
	Pickle   Format = "pickle"
	CSV      Format = "csv"
	RMM      Format = "rmm"
	STAlloc  Format = "stalloc"
	Perfetto Format = "perfetto"
)

// FormatOf returns the format that the ending of a file's name stands for; "" if it stands for none.
func FormatOf(name string) Format {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".pickle", ".pkl":
		return Pickle
	case ".csv":
		return CSV
	case ".json":
		return Perfetto
	}
	return ""
}

// Binary tells whether the format is none that a terminal shows.
func (f Format) Binary() bool { return f == Pickle }

// Export writes a trace to out. It is read once or twice, and for a snapshot once more for each GPU, each time by a reader of its
// own, which open returns. warn is called with a line for each kind of thing that the format has no place for. What is held in memory
// grows with the blocks that live at a time, with the distinct stacks and, for a snapshot, with the marks and
// the distinct addresses of a trace without segments.
func Export(open func() (*trace.Reader, error), f Format, out io.Writer, warn func(string)) error {
	w := bufio.NewWriterSize(out, 1<<20)
	x := &export{open: open, out: w, warn: warn}
	write, known := map[Format]func() error{
		Pickle: x.pickle, CSV: x.csv, RMM: x.rmm, STAlloc: x.stalloc, Perfetto: x.perfetto,
	}[f]
	if !known {
		panic("BUG: export as " + string(f))
	}
	if err := write(); err != nil {
		return err
	}
	return w.Flush()
}

// export is a trace on its way into a format.
type export struct {
	open func() (*trace.Reader, error)
	out  *bufio.Writer
	warn func(string)
	left map[string]int // how many of a kind of thing were left out
}

// each reads the trace once.
func (x *export) each(visit func(r *trace.Reader, row int64, e *trace.Event) error) (err error) {
	r, err := x.open()
	if err != nil {
		return err
	}
	defer func() {
		if closed := r.Close(); err == nil {
			err = closed
		}
	}()
	return trace.Each(r, func(row int64, e *trace.Event) error { return visit(r, row, e) })
}

// leave counts something that is left out.
func (x *export) leave(what string) {
	if x.left == nil {
		x.left = map[string]int{}
	}
	x.left[what]++
}

// warnLeft warns of what was left out.
func (x *export) warnLeft() {
	var lines []string
	for what, n := range x.left {
		lines = append(lines, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(lines)
	for _, line := range lines {
		x.warn(line)
	}
}
