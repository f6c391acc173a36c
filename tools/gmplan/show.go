package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"gm/formats/plan"
	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/units"
)

type showCmd struct {
	File         string `arg:"" optional:"" name:"plan" help:"The plan, or a graph. Standard input by default, or for '-'."`
	JSON         bool   `name:"json" help:"Print JSON."`
	cli.Pictures `set:"picture=Draw the layout: addresses over time, with a rectangle for each tensor; of a graph, memory over time."`
}

// contents is a plan in numbers.
type contents struct {
	Source     string   `json:"source"`
	Tensors    int64    `json:"tensors"`
	RowsOf     string   `json:"rows_of"`   // trace or step
	Rows       int64    `json:"rows"`      // of the trace or step
	First      int64    `json:"first_row"` // of the planned window
	End        int64    `json:"end_row"`
	Period     int64    `json:"period_rows"` // 0 for a plan that is not repeated
	Peak       int64    `json:"peak_bytes"`
	LowerBound int64    `json:"lower_bound_bytes"`
	Optimal    bool     `json:"optimal"`
	Solver     string   `json:"solver"`
	SolveNS    int64    `json:"solve_ns"`
	Alignment  int64    `json:"alignment_bytes"`
	Digest     string   `json:"trace_sha256"` // of the trace's file, or the graph's
	Arenas     []*arena `json:"arenas"`

	kinds kinds // of all blocks
}

type arena struct {
	Name    string `json:"arena"`
	Device  int32  `json:"device"`
	Tensors int64  `json:"tensors"`
	Peak    int64  `json:"peak_bytes"`

	blocks []report.Block
}

// Help implements kong.HelpProvider.
func (cmd *showCmd) Help() string {
	return "Examples: gmplan job.parquet | gmplan show --png layout.png; gmplan order g.parquet | gmplan show --png order.png"
}

// Run implements the command.
func (cmd *showCmd) Run(c *cli.Context) (err error) {
	if err := cmd.Pictures.Check(cmd.File); err != nil {
		return err
	}
	source, err := openSource(cmd.File, "plan")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if isGraph(source) {
		return cmd.showGraph(c, source)
	}
	r, err := plan.NewReader(source, source.Size(), source.Name())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	p, err := read(r)
	if err != nil {
		return err
	}
	if cmd.Pictures.Any() && len(p.Arenas) > report.MaxCharts {
		c.Warn("the picture has the first %d of %d arenas", report.MaxCharts, len(p.Arenas))
	}
	err = cmd.Pictures.Write(c.File,
		func(w io.Writer) error { return report.WritePackingPNG(w, p.packings()) },
		func(w io.Writer) error { return report.WritePackingSVG(w, p.packings()) })
	if err != nil {
		return err
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, p)
	}
	return p.print(c.Out)
}

func read(r *plan.Reader) (*contents, error) {
	m := r.Meta()
	p := &contents{
		Source: m.Source, kinds: newKinds(), RowsOf: rowsOf(&m), Tensors: r.Rows(), Rows: m.Rows, First: m.First, End: m.End, Period: m.Period, Peak: m.Peak,
		LowerBound: m.LowerBound, Optimal: m.Optimal, Solver: m.Solver, SolveNS: m.SolveNS, Alignment: m.Alignment, Digest: m.Digest,
	}
	type key struct{ device, arena int32 }
	arenas := map[key]*arena{}
	for {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			return p, nil
		} else if err != nil {
			return nil, err
		}
		for i := range batch.Len() {
			t := batch.Row(i)
			a := arenas[key{t.Device, t.Arena}]
			if a == nil {
				a = &arena{Name: r.Strings().Text(t.Arena), Device: t.Device}
				arenas[key{t.Device, t.Arena}] = a
				p.Arenas = append(p.Arenas, a)
			}
			a.add(&t, m.Alignment, p.kinds.of(r.Strings().Text(t.Tag)))
		}
	}
}

// rowsOf returns what a plan was made from: a trace or a step.
func rowsOf(m *plan.Meta) string {
	if m.RowsOf == plan.Step {
		return "step"
	}
	return "trace"
}

func (a *arena) add(t *plan.Tensor, alignment int64, kind int) {
	end := t.Offset + (t.Size+alignment-1)/alignment*alignment
	a.Tensors++
	a.Peak = max(a.Peak, end)
	a.blocks = append(a.blocks, report.Block{Start: t.Alloc, End: t.Free, Low: t.Offset, High: end, Kind: kind, Shade: shade(t)})
}

func (p *contents) print(w io.Writer) error {
	var text strings.Builder
	line := func(title, format string, args ...any) {
		fmt.Fprintf(&text, "%-12s%s\n", title, report.Printable(fmt.Sprintf(format, args...)))
	}
	if p.Source != "" {
		line("source", "%s", p.Source)
	}
	line("tensors", "%d, of rows %d to %d of the %s's %d", p.Tensors, p.First, p.End, p.RowsOf, p.Rows)
	if p.Period > 0 {
		line("period", "%s: the arenas *%s repeat", units.Count(p.Period, "row"), plan.Repeated)
	}
	line("peak", "%s (%d bytes)", units.Bytes(p.Peak), p.Peak)
	verdict := "optimal"
	if len(p.Arenas) > 1 {
		verdict = "optimal for these arenas"
	}
	if !p.Optimal && p.LowerBound > 0 {
		verdict = fmt.Sprintf("the peak is %.3f%% above", 100*float64(p.Peak-p.LowerBound)/float64(p.LowerBound))
	}
	line("bound", "%s (%d bytes): %s", units.Bytes(p.LowerBound), p.LowerBound, verdict)
	line("solver", "%s, %s", p.Solver, time.Duration(p.SolveNS).Round(time.Millisecond))
	line("alignment", "%s", units.Bytes(p.Alignment))
	text.WriteString("\n")
	t := report.Table{Titles: []string{"arena", "device", "tensors", "peak"}}
	for _, a := range p.Arenas {
		t.Add(a.Name, strconv.Itoa(int(a.Device)), strconv.FormatInt(a.Tensors, 10), units.Bytes(a.Peak).String())
	}
	if err := t.Write(&text); err != nil {
		return err
	}
	_, err := io.WriteString(w, text.String())
	return err
}
