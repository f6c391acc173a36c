// Package exporter writes traces in the formats of other tools: the memory snapshots of PyTorch, which its memory_viz page opens, a
// plain CSV, the log of RMM, the text of STAlloc, the JSON of Chrome's and Perfetto's trace viewers, and tables of tensors in Parquet.
// docs/gmtrace.md says which parts of a trace each format carries.
package exporter

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/trace/importer"
	"gm/internal/trace/tags"
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
	Tensors  Format = "tensors"
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
	case ".parquet":
		return Tensors
	}
	return ""
}

// Binary reports whether the format is unfit for a terminal.
func (f Format) Binary() bool { return f == Pickle || f == Tensors }

// Export writes a trace to out, in Perfetto's format together with what ran in a profile of torch.profiler, unless that is nil. It reads the trace up to four times, and for a snapshot once more per GPU, each time with a new reader
// from open. It calls warn with one line for each kind of thing that the format cannot represent. Its memory grows with the live
// blocks, the distinct stacks and, for a snapshot, with the marks and the distinct addresses of a trace without segments. Tags need what
// [tags.Derive] says, and a table of tensors 16 bytes for each allocation.
func Export(open func() (*trace.Reader, error), profile *importer.Input, f Format, out io.Writer, warn func(string)) error {
	w := bufio.NewWriterSize(out, 1<<20)
	x := &export{open: open, profile: profile, out: w, warn: warn}
	write, known := map[Format]func() error{
		Pickle: x.pickle, CSV: x.csv, RMM: x.rmm, STAlloc: x.stalloc, Perfetto: x.perfetto, Tensors: x.tensors,
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
	open    func() (*trace.Reader, error)
	profile *importer.Input
	out     *bufio.Writer
	warn    func(string)
	left    map[string]int // number of things that were left out, by kind
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

// labels derives the tags.
func (x *export) labels() (*tags.Tags, error) {
	r, err := x.open()
	if err != nil {
		return nil, err
	}
	labels, err := tags.Derive(r)
	if closed := r.Close(); err == nil {
		err = closed
	}
	return labels, err
}

// labelOf returns the label of an allocation; at the driver's level it is the recorded tag.
func labelOf(labels *tags.Tags, texts *column.Strings, e *trace.Event) tags.Label {
	if e.Level == trace.LevelDriver {
		return tags.Label{Tag: texts.Text(e.Tag), Certainty: tags.Recorded, Rule: tags.RuleRecorded}
	}
	return labels.Of(e.ID)
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
