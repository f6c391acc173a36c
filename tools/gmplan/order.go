package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"gm/internal/cli"
	"gm/internal/order"
	"gm/internal/order/papers"
	"gm/internal/order/solve"
	"gm/internal/plan/ordering"
	"gm/internal/swap/store"
	"gm/internal/units"
)

type orderCmd struct {
	Graph  string        `arg:"" optional:"" name:"graph" help:"The graph. Standard input by default, or for '-'."`
	Output string        `short:"o" placeholder:"FILE" help:"The file for the graph in its new order. Standard output by default."`
	Solver string        `default:"auto" help:"The solver, of the list below."`
	Time   time.Duration `default:"10s" help:"How long to search at most (${default}). Ctrl-C also ends the search and keeps the best order."`
	Rounds int           `placeholder:"N" help:"With auto: how many random starts are improved while the order is not proven optimal; 3 by default, more for small graphs."`
	Seed   uint64        `placeholder:"N" help:"With auto: the seed of random starts."`
	LP     string        `name:"lp" placeholder:"FILE" help:"Also write the problem as MODeL's integer program, in CPLEX's LP format for glpsol or cbc."`

	Complete bool `help:"Take the graph to hold all memory and all that operators wait for, though its file does not say so."`
}

// Help implements kong.HelpProvider.
func (cmd *orderCmd) Help() string {
	var text strings.Builder
	text.WriteString("Examples: gmplan order g.parquet -o ordered.parquet; gmswap record --all -- python train.py | gmplan order | gmswap plan -m 40GiB\n\n" +
		"Operators keep the order that their tensors and states ask for. The peak before and after, a lower bound of every order's peak, and the gap " +
		"between them go to standard error.\n\nSolvers:")
	for _, m := range solve.Methods() {
		fmt.Fprintf(&text, "\n\n%s: %s", m.Name, m.About)
	}
	return text.String()
}

// Run implements the command.
func (cmd *orderCmd) Run(c *cli.Context) error {
	method, err := solve.Lookup(cmd.Solver)
	switch {
	case err != nil:
		return cli.Usage("--solver: %v", err)
	case cmd.Time <= 0:
		return cli.Usage("--time: %s, expected more than 0s", cmd.Time)
	case cmd.Rounds < 0:
		return cli.Usage("--rounds: %d, expected at least 0", cmd.Rounds)
	case method.Name != "auto" && (cmd.Rounds > 0 || cmd.Seed > 0):
		return cli.Usage("--rounds and --seed are for --solver auto")
	}
	if cmd.Output == "" || cmd.Output == "-" {
		if err := c.CheckBinary(); err != nil {
			return err
		}
	}
	if cmd.LP != "" && cmd.LP == cmd.Output {
		return cli.Usage("-o and --lp are both %s", cmd.Output)
	}
	if err := cli.CheckFiles([]string{cmd.Graph}, []string{cmd.Output, cmd.LP}); err != nil {
		return err
	}
	g, err := store.ReadGraph(cmd.Graph)
	if err != nil {
		return err
	}
	if g.Origin != nil {
		return fmt.Errorf("graph %s: is an order of another graph already: order that one", g.File)
	}
	if !g.Complete && !cmd.Complete {
		return fmt.Errorf("graph %s: holds only tensors that may be moved, so it does not say what its operators wait for: record it with gmswap record --all, or give --complete", g.File)
	}
	found, err := cmd.find(c, g, method)
	if err != nil {
		return fmt.Errorf("order graph %s: %w", g.File, err)
	}
	g.Complete = true
	base := ordering.Lasting(g.Graph)
	made := ordering.File(g, found.Order, found.Method, found.Bound+base)
	if err := c.Binary(cmd.Output, func(w io.Writer) error { return store.WriteGraph(w, made) }); err != nil {
		return err
	}
	c.Note("%s", found.text(base))
	return nil
}

// reordering is an order that was found, and how.
type reordering struct {
	*solve.Result
	before int64 // bytes: the peak of the program's order
	took   time.Duration
}

// find searches an order.
func (cmd *orderCmd) find(c *cli.Context, g *store.Graph, method solve.Method) (*reordering, error) {
	interrupt, release := interruptible(c)
	defer release()
	ctx, cancel := context.WithTimeout(interrupt, cmd.Time)
	defer cancel()
	line := c.Line(func() string {
		return fmt.Sprintf("%s orders %s and %s", method.Name, units.Count(len(g.Ops), "operator"), units.Count(len(g.Tensors), "tensor"))
	})
	defer line.End()
	start := time.Now()
	problem := ordering.Problem(g.Graph)
	if err := problem.Validate(); err != nil {
		return nil, err
	}
	links := order.Link(problem)
	if cmd.LP != "" {
		if err := c.File(cmd.LP, func(w io.Writer) error { return papers.WriteProgram(w, links) }); err != nil {
			return nil, err
		}
	}
	options := solve.Default()
	options.Rounds, options.Seed = cmd.Rounds, cmd.Seed
	result, err := method.Find(ctx, links, options)
	if err != nil {
		return nil, err
	}
	found := &reordering{Result: result, took: time.Since(start)}
	found.before, _ = order.Peak(links.Loads(order.Program(problem.Ops())))
	if interrupt.Err() != nil {
		c.Note("interrupted: kept the best order so far")
	}
	return found, nil
}

// text summarizes an order of a step that takes some bytes throughout.
func (r *reordering) text(base int64) string {
	verdict := fmt.Sprintf("at least %s in every order, gap %s", units.Bytes(r.Bound+base), gapText(r.Peak+base, r.Bound+base))
	if r.Optimal() {
		verdict = "the least of all orders"
	}
	saved := 0.0
	if r.before+base > 0 {
		saved = 100 * float64(r.before-r.Peak) / float64(r.before+base)
	}
	if r.Rounds > 0 {
		verdict += fmt.Sprintf("; random starts: %d", r.Rounds)
	}
	return fmt.Sprintf("%s: peak %s, %.1f%% below the program's %s; %s; %s", r.Method, units.Bytes(r.Peak+base), saved, units.Bytes(r.before+base), verdict,
		r.took.Round(100*time.Microsecond))
}
