// Package exporter writes traces in the formats of other tools: the memory snapshots of PyTorch, which its memory_viz page opens, a
// plain CSV, the log of RMM, the text of STAlloc, and the JSON of Chrome's and Perfetto's trace viewers. docs/gmtrace.md says which
// parts of a trace each format carries.
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

// Format is a format of the output.
type Format string

// The formats.
const (
	Pickle   Format = "pickle"
	CSV      Format = "csv"
	RMM      Format = "rmm"
	STAlloc  Format = "stalloc"
	Perfetto Format = "perfetto"
)

// FormatOf returns the format for the extension of a file's name; "" if there is none.
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

// Binary reports whether the format is unfit for a terminal.
func (f Format) Binary() bool { return f == Pickle }

// Export writes a trace to out. It reads the trace once or twice, and for a snapshot once more per GPU, each time with a new reader
// from open. It calls warn with one line for each kind of thing that the format cannot represent. Its memory grows with the live
// blocks, the distinct stacks and, for a snapshot, with the marks and the distinct addresses of a trace without segments.
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

// export is the state of an export.
type export struct {
	open func() (*trace.Reader, error)
	out  *bufio.Writer
	warn func(string)
	left map[string]int // number of things that were left out, by kind
}

// each reads the trace once and calls visit with each row.
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

// leave counts a thing that is left out.
func (x *export) leave(what string) {
	if x.left == nil {
		x.left = map[string]int{}
	}
	x.left[what]++
}

// warnLeft warns about the things that were left out.
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
