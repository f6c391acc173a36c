package main

import (
	"errors"
	"fmt"
	"strings"

	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/plancheck"
	"gm/internal/units"
)

type checkCmd struct {
	Plan  string `arg:"" help:"The plan; '-' is standard input."`
	Trace string `arg:"" optional:"" help:"The trace that it was made from."`
}

// Help implements kong.HelpProvider.
func (cmd *checkCmd) Help() string { return "Example: gmplan check plan.parquet job.parquet" }

// Run implements the command.
func (cmd *checkCmd) Run(c *cli.Context) (err error) {
	p, err := plan.Open(cmd.Plan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	var t *trace.Reader
	if cmd.Trace != "" {
		if t, err = trace.Open(cmd.Trace); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.Close()) }()
	}
	report, err := plancheck.Check(p, t)
	if err != nil {
		return err
	}
	against := "its trace was not given"
	if m := p.Meta(); t != nil && m.First == 0 && m.End == m.Rows {
		against = "all of the trace"
	} else if t != nil {
		against = fmt.Sprintf("all that live in rows %d to %d of the trace", m.First, m.End)
	}
	m := p.Meta()
	_, err = fmt.Fprintf(c.Out, "valid: %d tensors (%s) in %d arenas, peak %s, at least %s%s\n", report.Tensors, against, report.Arenas,
		units.Bytes(report.Peak), units.Bytes(report.Load), remarks(&m, &report))
	return err
}

// remarks says what else there is to say of a valid plan.
func remarks(m *plan.Meta, r *plancheck.Report) string {
	var text strings.Builder
	if m.Period > 0 {
		fmt.Fprintf(&text, "; %d tensors again every %d rows", r.Repeated, m.Period)
	}
	if m.LowerBound > r.Load {
		fmt.Fprintf(&text, "; that nothing is below %d bytes was not checked", m.LowerBound)
	}
	return text.String()
}
