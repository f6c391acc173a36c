package main

import (
	"fmt"
	"io"
	"time"

	"gm/internal/bench/estimate"
	"gm/internal/bench/fit"
	"gm/internal/report"
	"gm/internal/units"
)

// printSwap says how little gmswap run would need, and what it comes to on each card that has so much and not enough without, or on one card.
func printSwap(w io.Writer, e *estimate.Estimate, card *fit.Card) error {
	if !e.Swap.Helps {
		_, err := fmt.Fprintln(w, "\ngmswap run would hardly help, by an estimate from the tags")
		return err
	}
	if _, err := fmt.Fprintf(w, "\ngmswap run -m could do with %s, by an estimate from the tags\n", units.Bytes(e.Swap.Least)); err != nil {
		return err
	}
	t := &report.Table{Titles: []string{"card", "gmswap run -m", "to the host and back", "step without", "adds"}}
	for _, c := range e.Swap.Cards {
		if card == nil || c.Card == *card {
			t.Add(cardText(c.Card), units.Bytes(c.Limit).String(), units.Bytes(c.Moved).String(), secondsText(c.Step), addsText(c))
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := t.Write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\ntimes are those of an H200 and of its link to the host, used by one GPU: from all copies beside the computation to none")
	return err
}

func secondsText(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func addsText(c estimate.SwapCard) string {
	return fmt.Sprintf("%.2f to %.2f s", c.Least.Seconds(), c.Most.Seconds())
}
