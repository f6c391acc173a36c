package main

import (
	"fmt"

	"gm/formats/column"
	"gm/internal/cli"
	"gm/internal/plan/check"
	"gm/internal/swap/store"
	"gm/internal/units"
)

// order checks a reordered graph against the one that it was made from.
func (cmd *checkCmd) order(c *cli.Context, source *column.Source) error {
	switch {
	case cmd.Trace == "":
		return cli.Usage("name the graph that %s was made from, too", source.Name())
	case cmd.Schedule != "":
		return cli.Usage("%s is a graph: its order is checked against one other graph, without a schedule", source.Name())
	}
	ordered, err := readGraph(source)
	if err != nil {
		return err
	}
	g, err := store.ReadGraph(cmd.Trace)
	if err != nil {
		return err
	}
	r, err := check.Order(ordered.Graph, g.Graph)
	if err != nil {
		return fmt.Errorf("graph %s is not an order of graph %s: %w", ordered.File, g.File, err)
	}
	text := fmt.Sprintf("valid: an order of %d operators, %d of them moved, and %d tensors; peak %s, before %s", r.Operators, r.Moved, r.Tensors,
		units.Bytes(r.After), units.Bytes(r.Before))
	if bound := ordered.Meta.LowerBound; bound > 0 {
		text += fmt.Sprintf("; the lower bound of %s was not verified", units.Bytes(bound))
	}
	_, err = fmt.Fprintln(c.Out, text)
	return err
}
