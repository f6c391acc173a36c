package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"gm/internal/cli"
	"gm/internal/swap"
	"gm/internal/swap/policy"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/store"
	"gm/internal/units"
)

type planCmd struct {
	Graph  string      `arg:"" optional:"" name:"graph" help:"The graph. Standard input by default, or for '-'."`
	Output string      `short:"o" placeholder:"FILE" help:"Where the schedule goes. Standard output by default."`
	Memory units.Bytes `short:"m" required:"" placeholder:"SIZE" help:"Use at most this much device memory."`
	Policy string      `default:"auto" placeholder:"NAME" help:"Which policy makes the schedule (${default}), see above."`
	hostFlags
}

// Help implements kong.HelpProvider.
func (cmd *planCmd) Help() string {
	return "Example: gmswap plan g.parquet -m 40GiB -o s.parquet\n\n" +
		"A summary of the schedule goes to standard error. If the policy has none within the limits, the exit status is 1.\n\n" + policyHelp()
}

// Run implements the command.
func (cmd *planCmd) Run(c *cli.Context) error {
	p, err := lookupPolicy(cmd.Policy)
	if err != nil {
		return err
	}
	if cmd.Output == "" || cmd.Output == "-" {
		if err := c.CheckBinary(); err != nil {
			return err
		}
	}
	if err := cli.CheckFiles([]string{cmd.Graph, cmd.Link}, []string{cmd.Output}); err != nil {
		return err
	}
	g, limits, err := cmd.load(cmd.Graph, cmd.Memory)
	if err != nil {
		return err
	}
	made, err := makeSchedule(c, g, p, limits)
	if err != nil {
		return err
	}
	if cmd.Host == 0 {
		made.Meta.HostBudget = 0
	}
	if err := c.Binary(cmd.Output, func(w io.Writer) error { return store.WriteSchedule(w, made.Schedule, g) }); err != nil {
		return err
	}
	c.Note("%s", summary(g, made, limits))
	return nil
}

// makeSchedule makes a schedule, and says on a terminal that it does.
func makeSchedule(c *cli.Context, g *store.Graph, p policy.Policy, limits scheduling.Limits) (*scheduling.Made, error) {
	line := c.Line(func() string {
		return fmt.Sprintf("policy %s plans %d operators and %d tensors", p.Name, len(g.Ops), len(g.Tensors))
	})
	made, err := scheduling.Make(g.Graph, p, limits)
	line.End()
	if short, ok := errors.AsType[*policy.ShortError](err); ok {
		return nil, tooShort(g, short, limits)
	}
	return made, err
}

// summary says what a schedule takes.
func summary(g *store.Graph, m *scheduling.Made, limits scheduling.Limits) string {
	if len(m.Actions) == 0 {
		return fmt.Sprintf("%s: nothing is moved: a step takes %s and %s", m.Policy, timeText(m.Plain.Step), units.Bytes(m.Plain.Peak))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: step %s, %s against one with nothing moved", m.Policy, timeText(m.Moved.Step), change(m.Moved.Step, m.Plain.Step))
	bound, ok := policy.LowerBound(g.Graph, swap.Limits{Device: limits.Device, Host: limits.Host, Link: limits.Copies()})
	if ok {
		fmt.Fprintf(&text, ", where %s is the least possible", change(bound, m.Plain.Step))
	}
	fmt.Fprintf(&text, "; peak %s of %s; %s on the host", units.Bytes(m.Moved.Peak), units.Bytes(m.Plain.Peak), units.Bytes(m.Meta.HostPeak))
	return text.String()
}
