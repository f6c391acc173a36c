package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/swap"
	"gm/internal/swap/policy"
	"gm/internal/units"
)

type compareCmd struct {
	Graph  string   `arg:"" optional:"" name:"graph" help:"The graph. Standard input by default, or for '-'."`
	Policy []string `placeholder:"NAME" help:"Which policies to compare: all by default, see the list below."`
	Memory string   `short:"m" placeholder:"LOW..HIGH" help:"Amounts of memory of the device: ten from LOW to HIGH, or a list such as 40GiB,60GiB. By default ten from what a single operator needs to what the step takes with nothing moved, or that of --testbed."`
	hostFlags
	JSON bool `name:"json" help:"Print JSON."`

	cli.Pictures `set:"picture=Draw the time of a step over its peak, for each policy."`
}

// Help implements kong.HelpProvider.
func (cmd *compareCmd) Help() string {
	return "Example: gmswap compare g.parquet --policy auto,memo,vdnn-all -m 20GiB..60GiB --png compare.png\n\n" +
		"The first table is the time of a step, the second its peak, by policy and amount of memory; - is where a policy has no schedule. " +
		"No schedule at all is faster than the lower bound.\n\n" + policyHelp() + "\n\n" + testbedHelp()
}

// Run implements the command.
func (cmd *compareCmd) Run(c *cli.Context) error {
	policies, err := cmd.policies()
	if err != nil {
		return err
	}
	span, err := cmd.span()
	if err != nil {
		return err
	}
	if err := cmd.distinct(); err != nil {
		return err
	}
	g, limits, err := cmd.load(cmd.Graph, unlimited)
	if err != nil {
		return err
	}
	s := newSweep(g, policies, limits)
	if err := s.over(span); err != nil {
		return err
	}
	progress := c.Progress("plan", int64(len(s.policies)*len(s.budgets)))
	err = s.run(func() { progress.Add(1) })
	progress.End()
	if err != nil {
		return err
	}
	if cmd.JSON {
		err = cli.WriteJSON(c.Out, s.account())
	} else {
		err = s.print(c.Out)
	}
	return errors.Join(err, cmd.draw(c, s.chart()))
}

// draw writes the pictures.
func (cmd *compareCmd) draw(c *cli.Context, chart report.Tradeoff) error {
	drawn := slices.ContainsFunc(chart.Curves, func(curve report.Curve) bool { return !curve.Limit && len(curve.X) > 0 })
	if !drawn {
		for _, path := range cmd.Pictures.Asked() {
			c.Warn("no policy has a schedule: %s is not drawn", path)
		}
		return nil
	}
	return cmd.Pictures.Write(c.File,
		func(w io.Writer) error { return report.WriteTradeoffPNG(w, chart) },
		func(w io.Writer) error { return report.WriteTradeoffSVG(w, chart) })
}

// policies returns those that are compared.
func (cmd *compareCmd) policies() ([]policy.Policy, error) {
	if len(cmd.Policy) == 0 {
		return policy.Policies(), nil
	}
	var all []policy.Policy
	for _, name := range cmd.Policy {
		p, err := lookupPolicy(name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// distinct refuses pictures instead of what is read, or of each other, or where no file can be made.
func (cmd *compareCmd) distinct() error {
	return cmd.Pictures.Check(cmd.Graph, cmd.Link)
}

// span returns the amounts of memory that flags ask for.
func (cmd *compareCmd) span() (span, error) {
	s, err := parseSpan(cmd.Memory)
	if err != nil {
		return s, cli.Usage("-m: %v", err)
	}
	var device units.Bytes
	if err := cmd.fill(&device); err != nil {
		return s, err
	}
	if cmd.Memory == "" && device > 0 {
		s.list = []int64{int64(device)}
	}
	return s, nil
}

// span is amounts of memory: a list, or from the least to the most, each 0 where the graph decides.
type span struct {
	list        []int64
	least, most int64
}

// parseSpan reads amounts of memory such as 40GiB,60GiB or 40GiB..60GiB.
func parseSpan(text string) (s span, err error) {
	low, high, isRange := strings.Cut(text, "..")
	if isRange || text == "" {
		for _, end := range []struct {
			text string
			size *int64
		}{{low, &s.least}, {high, &s.most}} {
			if end.text == "" {
				continue
			}
			if *end.size, err = parseAmount(end.text); err != nil {
				return s, err
			}
		}
		if s.most > 0 && s.least > s.most {
			return s, fmt.Errorf("%s is more than %s", low, high)
		}
		return s, nil
	}
	for _, part := range strings.Split(text, ",") {
		size, err := parseAmount(part)
		if err != nil {
			return s, err
		}
		s.list = append(s.list, size)
	}
	slices.Sort(s.list)
	s.list = slices.Compact(s.list)
	return s, nil
}

func parseAmount(text string) (int64, error) {
	size, err := units.ParseAmount(text)
	if err == nil && size == 0 {
		err = errors.New("nothing fits in 0 bytes")
	}
	return int64(size), err
}

// spanSteps is how many amounts of memory a range has.
const spanSteps = 10

// budgets returns the amounts of memory, ascending. Where they are not given they are rounded up to what is printed of them.
func (s *span) budgets(g *swap.Graph) ([]int64, error) {
	if s.list != nil {
		return s.list, nil
	}
	least, most := cmp.Or(s.least, roundUp(g.Least())), cmp.Or(s.most, slices.Max(g.Plain()))
	switch {
	case s.least == 0 && least > most: // by rounding
		least = most
	case least > most:
		return nil, fmt.Errorf("-m: %s is more than the %s of a step with nothing moved", units.Bytes(least), units.Bytes(most))
	}
	var all []int64
	for i := range int64(spanSteps) {
		all = append(all, min(most, roundUp(least+(most-least)/(spanSteps-1)*i)))
	}
	all[0], all[spanSteps-1] = least, most
	return slices.Compact(all), nil
}

// roundUp returns the least size that is printed with all of its digits.
func roundUp(bytes int64) int64 {
	unit, _ := units.Bytes(bytes).Unit()
	digits := 100.0
	if float64(bytes) >= 99.99*unit {
		digits = 10
	}
	return int64(math.Round(math.Ceil(float64(bytes)/unit*digits) / digits * unit))
}
