package main

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"gm/formats/schedule"
	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/swap"
	"gm/internal/swap/check"
	"gm/internal/swap/store"
	"gm/internal/units"
)

type checkCmd struct {
	Graph    string      `arg:"" name:"graph" help:"The graph that the schedule was made for; '-' is standard input."`
	Schedule string      `arg:"" name:"schedule" help:"The schedule; '-' is standard input."`
	Memory   units.Bytes `short:"m" placeholder:"SIZE" help:"Prove that at most this much device memory is in use. By default what the schedule was made for."`
	Host     units.Bytes `placeholder:"SIZE" help:"Prove that at most this much host memory is in use. By default what the schedule was made for."`
}

// Help implements kong.HelpProvider.
func (cmd *checkCmd) Help() string {
	return "Example: gmswap check g.parquet s.parquet\n\n" +
		"Proven is that each operator finds what it reads on the device, that each action is possible where it is, that no more memory " +
		"than the limits is in use at any moment, and that no two copies share memory of the host. It is done without simulation and " +
		"without times. What is wrong is printed line by line; the exit status is then 1."
}

// Run implements the command.
func (cmd *checkCmd) Run(c *cli.Context) error {
	g, s, err := readBoth(cmd.Graph, cmd.Schedule)
	if err != nil {
		return err
	}
	proof := newProof(g, s)
	limits := swap.Limits{
		Device: int64(orUnlimited(cmp.Or(cmd.Memory, units.Bytes(s.Meta.DeviceBudget)))),
		Host:   int64(orUnlimited(cmp.Or(cmd.Host, units.Bytes(s.Meta.HostBudget)))),
	}
	if wrong := proof.violations(limits); len(wrong) > 0 {
		return cmd.fail(c, g, s, wrong)
	}
	device, host := proof.peaks(s.Meta, limits)
	if err := agrees(s, device, host); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "ok: %s%s; in use are at most %s of the device%s, and %s of the host%s%s\n", units.Count(len(s.Actions), "action"),
		beside("made for", s.Meta.GPUs), units.Bytes(device), within(limits.Device), units.Bytes(host), within(limits.Host), proof.unplaced())
	return err
}

// readBoth reads a graph and a schedule that was made for it.
func readBoth(graph, schedule string) (*store.Graph, *store.Schedule, error) {
	if graph == "-" && schedule == "-" {
		return nil, nil, cli.Usage("graph and schedule are both standard input")
	}
	if err := cli.CheckFiles([]string{graph, schedule}, nil); err != nil {
		return nil, nil, err
	}
	g, err := readGraph(graph)
	if err != nil {
		return nil, nil, err
	}
	s, err := store.ReadSchedule(schedule)
	if err != nil {
		return nil, nil, err
	}
	return g, s, s.Fits(g)
}

// within names a limit, if there is one.
func within(limit int64) string {
	if units.Bytes(limit) == unlimited {
		return ""
	}
	return fmt.Sprintf(" (within %s)", units.Bytes(limit))
}

// fail prints what is wrong.
func (cmd *checkCmd) fail(c *cli.Context, g *store.Graph, s *store.Schedule, wrong []check.Violation) error {
	for _, v := range wrong {
		if _, err := fmt.Fprintln(c.Out, describe(g, v)); err != nil {
			return err
		}
	}
	count := fmt.Sprint(len(wrong))
	if len(wrong) >= check.Most {
		count += " or more"
	}
	return fmt.Errorf("schedule %s is not right: violations: %s", s.File, count)
}

// describe says what is wrong, with names.
func describe(g *store.Graph, v check.Violation) string {
	text := ""
	if v.Action >= 0 {
		text = fmt.Sprintf("action %d at ", v.Action)
	}
	text += fmt.Sprintf("operator %d", v.Op)
	if v.Op >= 0 && v.Op < len(g.Ops) && g.Ops[v.Op].Name != "" {
		text += " " + g.Ops[v.Op].Name
	}
	if v.Tensor >= 0 {
		text += fmt.Sprintf(", tensor %d", v.Tensor)
		if v.Tensor < len(g.Tensors) && g.Tensors[v.Tensor].Name != "" {
			text += " " + g.Tensors[v.Tensor].Name
		}
	}
	return report.Printable(text + ": " + v.Problem)
}

// proof is what is proven of a schedule.
type proof struct {
	graph    *swap.Graph
	schedule *swap.Schedule
	slots    []check.Slot // nil when the schedule has none
}

func newProof(g *store.Graph, s *store.Schedule) *proof {
	p := &proof{graph: g.Graph, schedule: s.Schedule}
	if s.Slots == nil {
		return p
	}
	for i, a := range s.Actions {
		if a.Kind == swap.Offload && s.Slots[i] >= 0 {
			p.slots = append(p.slots, check.Slot{Action: i, Offset: s.Slots[i], Bytes: a.Bytes})
		}
	}
	return p
}

// unplaced says that it is not proven where on the host copies are, if the schedule has none of their places.
func (p *proof) unplaced() string {
	copies := slices.ContainsFunc(p.schedule.Actions, func(a swap.Action) bool { return a.Kind == swap.Offload })
	if p.slots != nil || !copies {
		return ""
	}
	return "; where on the host is not said"
}

func (p *proof) violations(l swap.Limits) []check.Violation {
	return check.Check(p.graph, p.schedule, l, p.slots)
}

// peaks returns the least limits that can be proven, of those that are no more than some that are. What the schedule's file says is tried first.
func (p *proof) peaks(said schedule.Meta, l swap.Limits) (device, host int64) {
	device = least(said.Peak, l.Device, func(most int64) bool {
		return len(p.violations(swap.Limits{Device: most, Host: l.Host})) == 0
	})
	host = least(said.HostPeak, l.Host, func(most int64) bool {
		return len(p.violations(swap.Limits{Device: l.Device, Host: most})) == 0
	})
	return device, host
}

// least returns the least number for which something holds, as it does for one and all above.
func least(guess, holds int64, does func(int64) bool) int64 {
	if guess <= holds && does(guess) && (guess == 0 || !does(guess-1)) {
		return guess
	}
	return int64(sort.Search(int(holds), func(n int) bool { return does(int64(n)) }))
}

// agrees returns an error if the schedule's file says other peaks than what is proven. Without any it says 0.
func agrees(s *store.Schedule, device, host int64) error {
	if s.Meta.Peak != 0 && s.Meta.Peak != device || s.Meta.HostPeak != 0 && s.Meta.HostPeak != host {
		return fmt.Errorf("schedule %s: it says that at most %d bytes of the device and %d of the host are in use, proven are %d and %d",
			s.File, s.Meta.Peak, s.Meta.HostPeak, device, host)
	}
	return nil
}
