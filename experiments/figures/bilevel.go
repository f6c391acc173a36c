package main

import (
	"context"
	"fmt"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/bilevel"
	"gm/internal/dsa/solvers"
	"gm/internal/models/layouts"
)

// The layout of an iteration in two levels may take so long, for sequences of so many tokens.
const (
	bilevelTime   = time.Second
	bilevelTokens = 64 << 10
)

// measureBilevel lays out an iteration of each of MEMO's models: flat, in two levels, and in two levels as MEMO has them.
func measureBilevel(e *experiment) error {
	for _, m := range layouts.Models(bilevelTokens) {
		for _, m.Offload = range []bool{false, true} {
			name := "bilevel " + m.Name
			if m.Offload {
				name += " offloaded"
			}
			if err := e.bilevel(name, m.Problem()); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func (e *experiment) bilevel(name string, p *dsa.Problem) error {
	f, err := bilevel.FoldRepeats(context.Background(), p, solvers.Auto())
	if err != nil {
		return err
	}
	flat, flatTook, err := solve("auto", p)
	if err != nil {
		return err
	}
	folded, took, err := solve("bilevel", p)
	if err != nil {
		return err
	}
	published, memoTook, err := solve("memo", p)
	if err != nil {
		return err
	}
	bound := float64(flat.Bound)
	measured := fmt.Sprintf("%d requests, parts: %d, found %d times, %d + %d to lay out; flat %.4f of the bound, %.1f ms; bilevel %.4f, %.1f ms; memo %.4f, %.1f ms",
		p.Len(), f.Parts, f.Occurrences, f.First, f.Second,
		float64(flat.Peak)/bound, milliseconds(flatTook), float64(folded.Peak)/bound, milliseconds(took),
		float64(published.Peak)/bound, milliseconds(memoTook))
	e.add(name, measured, bilevelTime.String(), took <= bilevelTime)
	return nil
}

// solve returns a layout and the shortest time it took.
func solve(name string, p *dsa.Problem) (l dsa.Layout, took time.Duration, err error) {
	s, err := solvers.Lookup(name)
	if err != nil {
		return l, 0, err
	}
	took, err = bestOf(func() (err error) {
		l, err = s.Solve(context.Background(), p, dsa.Options{})
		return err
	})
	return l, took, err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
