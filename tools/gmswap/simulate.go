package main

import (
	"fmt"

	"gm/internal/cli"
	"gm/internal/swap"
	"gm/internal/swap/link"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/simulate"
	"gm/internal/swap/store"
	"gm/internal/swap/timeline"
	"gm/internal/units"
)

type simulateCmd struct {
	Graph    string      `arg:"" optional:"" name:"graph" help:"The graph. Standard input by default, or for '-'."`
	Schedule string      `arg:"" optional:"" name:"schedule" help:"A schedule that was made for the graph; '-' is standard input. Without one, -m or --policy makes one, and otherwise nothing is moved."`
	Memory   units.Bytes `short:"m" placeholder:"SIZE" help:"Make a schedule that uses at most this much device memory."`
	Policy   string      `placeholder:"NAME" help:"Which policy makes it (auto by default); gmswap plan --help lists them."`
	hostFlags
	Trace string `placeholder:"FILE" help:"Write what runs and is copied when, and the memory in use, for ui.perfetto.dev or chrome://tracing."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *simulateCmd) Help() string {
	return "Example: gmswap simulate g.parquet s.parquet --trace step.json\n\n" +
		"Copies take what --link, --bandwidth or --testbed say; without, what the schedule was made for. As many GPUs copy at the same time as it was " +
		"made for. A testbed also has a schedule made that keeps to its memory.\n\n" + testbedHelp()
}

// Run implements the command.
func (cmd *simulateCmd) Run(c *cli.Context) error {
	if err := cmd.check(); err != nil {
		return err
	}
	s, err := cmd.load(c)
	if err != nil {
		return err
	}
	if err := s.run(); err != nil {
		return err
	}
	if cmd.Trace != "" {
		if err := c.File(cmd.Trace, s.line.Write); err != nil {
			return err
		}
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, s.account())
	}
	return s.print(c.Out)
}

// check looks for wrong usage.
func (cmd *simulateCmd) check() error {
	if cmd.Schedule != "" && (cmd.Memory > 0 || cmd.Policy != "" || cmd.Host > 0) {
		return cli.Usage("a schedule is given: -m, --host and --policy are for making one")
	}
	if cmd.Schedule == "" && cmd.Host > 0 && cmd.Memory == 0 && cmd.Policy == "" && cmd.Testbed == "" {
		return cli.Usage("--host only limits a schedule that is made: give -m or --policy too")
	}
	if cmd.Schedule != "" && cmd.Testbed != "" && (cmd.Link != "" || cmd.Bandwidth > 0) {
		return cli.Usage("a schedule is given: --testbed only says how fast copies are, as --link and --bandwidth do")
	}
	return cli.CheckFiles([]string{cmd.Graph, cmd.Schedule, cmd.Link}, []string{cmd.Trace})
}

// simulation is a step that is simulated.
type simulation struct {
	graph    *store.Graph
	schedule *store.Schedule
	copies   swap.Copier
	result   *simulate.Result
	plain    *simulate.Result
	line     timeline.Timeline
}

// load reads the graph, and reads or makes the schedule.
func (cmd *simulateCmd) load(c *cli.Context) (*simulation, error) {
	if cmd.Schedule != "" {
		return cmd.read()
	}
	if err := cmd.fill(&cmd.Memory); err != nil {
		return nil, err
	}
	if cmd.Policy == "" && cmd.Memory == 0 {
		cmd.Policy = "none"
	} else if cmd.Policy == "" {
		cmd.Policy = "auto"
	}
	p, err := lookupPolicy(cmd.Policy)
	if err != nil {
		return nil, err
	}
	g, limits, err := cmd.hostFlags.load(cmd.Graph, orUnlimited(cmd.Memory))
	if err != nil {
		return nil, err
	}
	made, err := makeSchedule(c, g, p, limits, scheduling.Make)
	if err != nil {
		return nil, err
	}
	return &simulation{graph: g, schedule: made.Schedule, copies: limits.Copies()}, nil
}

// read reads a schedule that was made for the graph.
func (cmd *simulateCmd) read() (*simulation, error) {
	g, s, err := readBoth(cmd.Graph, cmd.Schedule)
	if err != nil {
		return nil, err
	}
	figures, err := cmd.copies()
	if err != nil {
		return nil, err
	}
	if figures == nil {
		if figures, err = madeFor(s); err != nil {
			return nil, fmt.Errorf("schedule %s: the link that it was made for: %w; --link names another", s.File, err)
		}
	}
	return &simulation{graph: g, schedule: s, copies: figures.Under(link.Load{GPUs: int(s.Meta.GPUs)})}, nil
}

// madeFor returns the link that a schedule was made for, or that of an H200 where it does not say.
func madeFor(s *store.Schedule) (*link.Link, error) {
	if s.Meta.Link == "" {
		return link.Default(), nil
	}
	return link.Parse([]byte(s.Meta.Link))
}

func (s *simulation) run() (err error) {
	s.line.Name = s.graph.Name + ", " + s.schedule.Policy
	if s.plain, err = simulate.Run(s.graph.Graph, nil, s.copies, nil); err != nil {
		return err
	}
	if s.result, err = simulate.Run(s.graph.Graph, s.schedule.Actions, s.copies, s.line.Add); err != nil {
		return fmt.Errorf("schedule %s: %w: gmswap check says more", s.schedule.File, err)
	}
	return nil
}
