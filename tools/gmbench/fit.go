package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gm/internal/bench"
	"gm/internal/bench/fit"
	"gm/internal/bench/replay"
	"gm/internal/cli"
	"gm/internal/cuda/sim"
	"gm/internal/report"
	"gm/internal/units"
)

// fit prints the least memory with which each allocator runs the whole program, and the cards that have that much.
func (cmd *compareCmd) fit(c *cli.Context, programs []*replay.Program, specs []bench.Spec, costs sim.CostTable) error {
	progress := c.Progress("fit", int64(len(programs)*len(specs)))
	results, err := fit.All(c.Context(), programs, specs, costs, func() { progress.Add(1) })
	progress.End()
	if err != nil {
		return err
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, struct {
			Results []fit.Result `json:"results"`
		}{results})
	}
	return writeFits(c.Out, programs, results)
}

// writeFits prints a table for each program, and the memory of the cards.
func writeFits(w io.Writer, programs []*replay.Program, results []fit.Result) error {
	width := len(results) / len(programs)
	var shown []fit.Card // by programs whose memory beside PyTorch was not recorded
	for i, p := range programs {
		rows := results[i*width : (i+1)*width]
		if _, err := fmt.Fprintf(w, "%s: %s requested at the peak\n\n", p.Name, units.Bytes(rows[0].Requested)); err != nil {
			return err
		}
		cards := telling(rows)
		if err := fitTable(rows, cards).Write(w); err != nil {
			return err
		}
		beside := "\n"
		if p.Outside > 0 {
			beside = fmt.Sprintf("\nbeside PyTorch the process had up to %s\n%s\n", units.Bytes(p.Outside), cardList(cards))
		} else {
			shown = append(shown, cards...)
		}
		if _, err := io.WriteString(w, beside); err != nil {
			return err
		}
	}
	legend := ""
	if slices.ContainsFunc(results, tight) {
		legend = "tight: runs only by emptying the cache when memory is full, which retries count\n"
	}
	if len(shown) > 0 {
		legend += cardList(slices.DeleteFunc(fit.Cards(), func(c fit.Card) bool { return !slices.Contains(shown, c) }))
	}
	_, err := io.WriteString(w, legend)
	return err
}

// tight reports whether there is a card on which a program runs with retries only.
func tight(r fit.Result) bool {
	return slices.ContainsFunc(r.Cards, func(c fit.OnCard) bool { return c.Retries > 0 })
}

// telling returns the cards that tell allocators apart, with the largest that is too small for all, and the smallest on which all run.
func telling(rows []fit.Result) []fit.Card {
	all := fit.CardsBeside(rows[0].Outside)
	from, to := 0, len(all)
	for from+1 < to && !slices.ContainsFunc(rows, func(r fit.Result) bool { return r.Cards[from+1].Fits }) {
		from++
	}
	for to-2 >= from && !slices.ContainsFunc(rows, func(r fit.Result) bool { return onCard(r.Cards[to-2]) != "yes" }) {
		to--
	}
	return all[from:to]
}

func fitTable(rows []fit.Result, shown []fit.Card) *report.Table {
	t := &report.Table{Titles: []string{"allocator", "least", "retries", "unlimited"}}
	for _, c := range shown {
		t.Titles = append(t.Titles, c.Short())
	}
	for _, r := range rows {
		cells := []string{r.Allocator, "none", "-", "-"}
		if r.Least > 0 {
			cells = []string{r.Allocator, units.Bytes(r.Least).String(), strconv.FormatInt(r.Retries, 10), units.Bytes(r.Peak).String()}
		}
		for _, c := range r.Cards {
			if slices.Contains(shown, c.Card) {
				cells = append(cells, onCard(c))
			}
		}
		t.Add(cells...)
	}
	return t
}

// onCard returns the cell of a card.
func onCard(c fit.OnCard) string {
	switch {
	case !c.Fits:
		return "-"
	case c.Retries > 0:
		return "tight"
	}
	return "yes"
}

// cardList lists the memory that cards have for a program, in lines of at most 100 characters.
func cardList(cards []fit.Card) string {
	line := "usable:"
	var text strings.Builder
	for i, c := range cards {
		entry := fmt.Sprintf(" %s (%d GB) %.1f GiB", c.Name, c.GB, float64(c.Usable)/(1<<30))
		if i > 0 {
			line += ","
		}
		if len(line)+len(entry) >= 100 {
			text.WriteString(line + "\n")
			line = "       "
		}
		line += entry
	}
	return text.String() + line + "\n"
}
