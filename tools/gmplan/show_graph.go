package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"gm/formats/column"
	"gm/internal/cli"
	"gm/internal/plan/ordering"
	"gm/internal/report"
	"gm/internal/swap"
	"gm/internal/swap/store"
	"gm/internal/units"
)

// step is a graph in numbers.
type step struct {
	Graph      string `json:"graph"`
	Device     string `json:"device"`
	Operators  int    `json:"operators"`
	Tensors    int    `json:"tensors"`
	Complete   bool   `json:"complete"`
	ComputeNS  int64  `json:"compute_ns"`
	Peak       int64  `json:"peak_bytes"`
	PeakOp     int    `json:"peak_operator"`
	PeakName   string `json:"peak_name"`
	Order      string `json:"order"`              // the method that found it; "" for that of the program
	Program    int64  `json:"program_peak_bytes"` // of the program's order
	LowerBound int64  `json:"lower_bound_bytes"`  // 0 if it is not known

	lines []report.Line
}

// showGraph prints a graph, and draws it.
func (cmd *showCmd) showGraph(c *cli.Context, source *column.Source) error {
	g, err := readGraph(source)
	if err != nil {
		return err
	}
	s := newStep(g)
	charts := []report.Chart{{Title: s.Graph + ": bytes in use, over the time of the operators", Lines: s.lines}}
	err = cmd.Pictures.Write(c.File,
		func(w io.Writer) error { return report.WritePNG(w, charts) },
		func(w io.Writer) error { return report.WriteSVG(w, charts) })
	if err != nil {
		return err
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, s)
	}
	return s.print(c.Out)
}

func newStep(g *store.Graph) *step {
	s := &step{
		Graph: g.Name, Device: g.Device, Operators: len(g.Ops), Tensors: len(g.Tensors), Complete: g.Complete, ComputeNS: int64(g.Compute()),
		Order: g.Meta.Order, LowerBound: g.Meta.LowerBound, PeakOp: -1,
	}
	for i, used := range ordering.Loads(g.Graph) {
		if s.PeakOp < 0 || used > s.Peak {
			s.Peak, s.PeakOp, s.PeakName = used, i, g.Ops[i].Name
		}
	}
	s.Program = s.Peak
	if g.Origin == nil {
		s.lines = []report.Line{lineOf(g.Graph, "the program's order")}
		return s
	}
	if program, ok := ordering.Program(g.Graph); ok {
		for _, used := range ordering.Loads(program) {
			s.Program = max(s.Program, used)
		}
		s.lines = append(s.lines, lineOf(program, "the program's order"))
	}
	s.lines = append(s.lines, lineOf(g.Graph, "this order"))
	if s.LowerBound > 0 {
		s.lines = append(s.lines, report.Line{
			Name: "lower bound", TimeNS: []int64{0, s.ComputeNS}, Bytes: []int64{s.LowerBound, s.LowerBound},
		})
	}
	return s
}

// lineOf returns the bytes in use over the time of a step that moves nothing.
func lineOf(g *swap.Graph, name string) report.Line {
	line := report.Line{Name: name}
	var now int64
	for i, used := range ordering.Loads(g) {
		line.TimeNS, line.Bytes = append(line.TimeNS, now), append(line.Bytes, used)
		now += int64(g.Ops[i].Duration)
	}
	return line
}

func (s *step) print(w io.Writer) error {
	var text strings.Builder
	line := func(title, format string, args ...any) {
		fmt.Fprintf(&text, "%-12s%s\n", title, report.Printable(fmt.Sprintf(format, args...)))
	}
	if s.Graph != "" {
		line("graph", "%s", s.Graph)
	}
	what := "what may be moved; other memory is in the operators' base_bytes"
	if s.Complete {
		what = "all memory of the step"
	}
	line("operators", "%d, %s on %s", s.Operators, time.Duration(s.ComputeNS).Round(time.Microsecond), s.Device)
	line("tensors", "%d: %s", s.Tensors, what)
	if s.PeakOp >= 0 {
		line("peak", "%s (%d bytes), at operator %d, %s", units.Bytes(s.Peak), s.Peak, s.PeakOp, s.PeakName)
	}
	if s.Order != "" {
		line("order", "%s; the program's takes %s", s.Order, units.Bytes(s.Program))
	}
	if s.LowerBound > 0 {
		line("bound", "%s (%d bytes) in every order: the peak is %.3f%% above", units.Bytes(s.LowerBound), s.LowerBound,
			100*float64(s.Peak-s.LowerBound)/float64(s.LowerBound))
	}
	_, err := io.WriteString(w, text.String())
	return err
}
