package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gm/internal/cli"
	"gm/internal/swap"
	"gm/internal/swap/policy"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/store"
	"gm/internal/swap/workspace"
	"gm/internal/units"
)

type planCmd struct {
	Graph  string      `arg:"" optional:"" name:"graph" help:"The graph. Standard input by default, or for '-'."`
	Output string      `short:"o" placeholder:"FILE" help:"Where the schedule goes. Standard output by default."`
	Memory units.Bytes `short:"m" placeholder:"SIZE" help:"Use at most this much device memory. Needed, unless --testbed says it."`
	Policy string      `default:"auto" placeholder:"NAME" help:"Which policy makes the schedule (${default}), see the list below."`
	hostFlags
	Options string `placeholder:"FILE" help:"Also choose among the options that operators have, and write the graph in which they run so: the schedule is for that one."`
}

// Help implements kong.HelpProvider.
func (cmd *planCmd) Help() string {
	return "Example: gmswap plan g.parquet -m 40GiB -o s.parquet\n" +
		"         gmswap plan g.parquet --testbed titan-x -o s.parquet\n" +
		"         gmswap plan g.parquet -m 12GiB --options chosen.parquet -o s.parquet\n\n" +
		"A summary of the schedule goes to standard error. If the policy has none within the limits, the exit status is 1.\n\n" + policyHelp() + "\n\n" + testbedHelp()
}

// Run implements the command.
func (cmd *planCmd) Run(c *cli.Context) error {
	p, err := lookupPolicy(cmd.Policy)
	if err != nil {
		return err
	}
	if err := cmd.fill(&cmd.Memory); err != nil {
		return err
	}
	if cmd.Memory == 0 {
		return cli.Usage("-m: say how much device memory there is, or name a testbed")
	}
	if cmd.Output == "" || cmd.Output == "-" {
		if err := c.CheckBinary(); err != nil {
			return err
		}
	}
	if err := cli.CheckFiles([]string{cmd.Graph, cmd.Link}, []string{cmd.Output, cmd.Options}); err != nil {
		return err
	}
	g, limits, err := cmd.load(cmd.Graph, cmd.Memory)
	if err != nil {
		return err
	}
	made, err := cmd.schedule(c, g, p, limits)
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

// schedule makes a schedule of g. With --options it chooses among those of its operators, writes the graph in which they run so, and puts it in the
// place of g.
func (cmd *planCmd) schedule(c *cli.Context, g *store.Graph, p policy.Policy, limits scheduling.Limits) (*scheduling.Made, error) {
	if cmd.Options == "" {
		return makeSchedule(c, g, p, limits, scheduling.Make)
	}
	if !slices.ContainsFunc(g.Ops, func(o swap.Op) bool { return len(o.Options) > 0 }) {
		return nil, fmt.Errorf("graph %s: --options: none of its operators has any", g.File)
	}
	before, chosen := g.Graph, (*scheduling.Chosen)(nil)
	made, err := makeSchedule(c, g, p, limits, func(plain *swap.Graph, p policy.Policy, l scheduling.Limits) (_ *scheduling.Made, err error) {
		if chosen, err = scheduling.MakeChoosing(plain, p, l); err != nil {
			return nil, err
		}
		return chosen.Made, nil
	})
	if err != nil {
		return nil, err
	}
	g.Graph = chosen.Graph
	c.Note("%s", choiceText(before, chosen.Choice))
	return made, c.File(cmd.Options, func(w io.Writer) error { return store.WriteGraph(w, g) })
}

// choiceText says how operators with options run.
func choiceText(g *swap.Graph, c workspace.Choice) string {
	having, chosen, most := 0, 0, int64(0)
	for i := range g.Ops {
		if len(g.Ops[i].Options) > 0 {
			having++
		}
		if c[i] != workspace.Plain {
			chosen++
		}
		most = max(most, c.Bytes(g, i))
	}
	fastest := workspace.Within(g, math.MaxInt64)
	return fmt.Sprintf("options: %d of %d operators take one, with workspaces of %s at most; all operators take %s, without options %s, with the fastest %s",
		chosen, having, units.Bytes(most), timeText(c.Apply(g).Compute()), timeText(g.Compute()), timeText(fastest.Apply(g).Compute()))
}

// maker makes a schedule of a graph: scheduling.Make is one.
type maker func(*swap.Graph, policy.Policy, scheduling.Limits) (*scheduling.Made, error)

// makeSchedule has a schedule made, and says on a terminal that it is.
func makeSchedule(c *cli.Context, g *store.Graph, p policy.Policy, limits scheduling.Limits, by maker) (*scheduling.Made, error) {
	line := c.Line(func() string {
		return fmt.Sprintf("policy %s plans %s and %s", p.Name, units.Count(len(g.Ops), "operator"), units.Count(len(g.Tensors), "tensor"))
	})
	made, err := by(g.Graph, p, limits)
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
