package main

import (
	"errors"
	"fmt"
	"strings"

	"gm/formats/plan"
	"gm/internal/cli"
	"gm/internal/plan/check"
	"gm/internal/plan/layout"
	"gm/internal/trace/input"
	"gm/internal/trace/ranks"
	"gm/internal/units"
)

type checkCmd struct {
	Plan     string `arg:"" help:"The plan, or a graph that was reordered; '-' is standard input."`
	Trace    string `arg:"" optional:"" name:"trace" help:"The trace, recording or graph that the plan or the order was made from; or a folder with the traces of a job's ranks, to learn which the plan fits."`
	Schedule string `arg:"" optional:"" help:"With a graph: the schedule that the plan was made with."`
}

// Help implements kong.HelpProvider.
func (cmd *checkCmd) Help() string {
	return "Examples: gmplan check plan.parquet job.parquet; gmplan check plan.parquet g.parquet s.parquet; gmplan check ordered.parquet g.parquet"
}

// Run implements the command.
func (cmd *checkCmd) Run(c *cli.Context) (err error) {
	if cmd.Plan == "-" && (cmd.Trace == "-" || cmd.Schedule == "-") {
		return cli.Usage("the plan and the file that it was made from are both standard input: name a file for one of them")
	}
	if err := cli.CheckFiles([]string{cmd.Plan, cmd.Trace, cmd.Schedule}, nil); err != nil {
		return err
	}
	source, err := openSource(cmd.Plan, "plan")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if ranks.IsFolder(cmd.Trace) && cmd.Schedule == "" {
		return cmd.ranks(c, source)
	}
	if isGraph(source) {
		return cmd.order(c, source)
	}
	p, err := plan.NewReader(source, source.Size(), source.Name())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	m := p.Meta()
	var report check.Report
	switch {
	case m.RowsOf == plan.Step && cmd.Trace != "":
		report, err = cmd.step(p)
	case cmd.Schedule != "":
		err = fmt.Errorf("plan %s is of a trace, which has no schedule: leave the schedule out", p.Name())
	default:
		report, err = cmd.trace(c, p)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "valid: %s (%s) in %s, peak %s, at least %s%s\n", units.Count(report.Tensors, "tensor"), cmd.against(&m), units.Count(report.Arenas, "arena"),
		units.Bytes(report.Peak), units.Bytes(report.Load), remarks(&m, &report))
	return err
}

// trace checks the plan of a trace, or any plan without the file that it was made from.
func (cmd *checkCmd) trace(c *cli.Context, p *plan.Reader) (_ check.Report, err error) {
	if cmd.Trace == "" {
		return check.Check(p, nil)
	}
	t, err := input.OpenTrace(c, cmd.Trace)
	if err != nil {
		return check.Report{}, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return check.Check(p, t.Reader)
}

// step checks the plan of a step.
func (cmd *checkCmd) step(p *plan.Reader) (check.Report, error) {
	g, step, err := (&stepFiles{cmd.Trace, cmd.Schedule}).read()
	if err != nil {
		return check.Report{}, err
	}
	all := layout.OfStep(g, step)
	tensors := make([]plan.Tensor, all.Len())
	for i := range tensors {
		tensors[i] = plan.Tensor{
			ID: all.ID[i], Size: all.Size[i], Alloc: all.Alloc[i], Free: all.Free[i], AllocNS: all.AllocNS[i], FreeNS: all.FreeNS[i],
		}
	}
	return check.CheckStep(p, tensors, all.Rows, all.Digest)
}

// against describes what the plan was compared with.
func (cmd *checkCmd) against(m *plan.Meta) string {
	of := rowsOf(m)
	switch {
	case cmd.Trace == "":
		return fmt.Sprintf("its %s was not given", of)
	case m.First == 0 && m.End == m.Rows:
		return "all of the " + of
	}
	return fmt.Sprintf("all that live in rows %d to %d of the %s", m.First, m.End, of)
}

// remarks returns further remarks about a valid plan.
func remarks(m *plan.Meta, r *check.Report) string {
	var text strings.Builder
	if m.Period > 0 {
		fmt.Fprintf(&text, "; %d of the tensors repeat every %s", r.Repeated, units.Count(m.Period, "row"))
	}
	if m.LowerBound > r.Load {
		fmt.Fprintf(&text, "; the lower bound of %d bytes was not verified", m.LowerBound)
	}
	return text.String()
}
