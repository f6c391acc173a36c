package main

import (
	"fmt"
	"io"
	"strconv"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/bench/why"
	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/units"
)

// explained is the account of one allocator on one trace.
type explained struct {
	Trace string `json:"trace"`
	*why.Account
	program *replay.Program
}

// explain prints how much memory each allocator loses by each cause.
func (cmd *compareCmd) explain(c *cli.Context, programs []*replay.Program, specs []bench.Spec, gpu bench.GPU) error {
	all, err := explainAll(c, programs, specs, gpu)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, struct {
			Accounts []explained `json:"accounts"`
		}{all})
	}
	for _, e := range all {
		if err := e.write(c.Out); err != nil {
			return err
		}
	}
	return nil
}

func explainAll(c *cli.Context, programs []*replay.Program, specs []bench.Spec, gpu bench.GPU) ([]explained, error) {
	progress := c.Progress("explain", int64(len(programs)*len(specs)))
	defer progress.End()
	var all []explained
	for _, p := range programs {
		accounts, err := why.ExplainAll(c.Context(), p, specs, gpu, func() { progress.Add(1) })
		if err != nil {
			return nil, err
		}
		for _, a := range accounts {
			all = append(all, explained{p.Name, a, p})
		}
	}
	return all, nil
}

func (e explained) write(w io.Writer) error {
	text := fmt.Sprintf("%s, %s: ", e.Trace, e.Allocator)
	if e.OOM != nil {
		text += fate(e.OOM) + "\n"
	}
	if e.Reserved == 0 {
		_, err := fmt.Fprintln(w, text+"nothing reserved\n")
		return err
	}
	lost := e.Reserved - e.Requested
	text += fmt.Sprintf("%s reserved at the peak\nrow %d, after %s: %s requested and held, %s lost, %s of what is reserved\n\n",
		units.Bytes(e.Reserved), e.Row, duration(e.TimeNS-e.program.TimesNS[0]), units.Bytes(e.Requested), units.Bytes(lost),
		percent(float64(lost)/float64(e.Reserved)))
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	if err := e.partTable(lost).Write(w); err != nil {
		return err
	}
	if len(e.Pins) > 0 {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := e.pinTable().Write(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// partTable lists the parts that are not empty.
func (e explained) partTable(lost int64) *report.Table {
	t := &report.Table{Titles: []string{"lost in", "size", "bytes", "of reserved"}}
	add := func(name string, n int64) {
		t.Add(name, units.Bytes(n).String(), strconv.FormatInt(n, 10), percent(float64(n)/float64(e.Reserved)))
	}
	for _, part := range e.Parts {
		if part.Bytes != 0 {
			add(part.Name, part.Bytes)
		}
	}
	add("all", lost)
	return t
}

// maxPinned is how many segments are printed; --json has more.
const maxPinned = 5

// stackWidth is the width of a stack in a line of 100 characters.
const stackWidth = 44

func (e explained) pinTable() *report.Table {
	t := &report.Table{Titles: []string{"segments in use, by their oldest block", "size", "age", "segment", "free in it", "blocks"}}
	pins := e.Pins[:min(len(e.Pins), maxPinned)]
	var stacks []string
	for _, p := range pins {
		stacks = append(stacks, p.Stack)
	}
	names := report.NewStackNames(stacks, stackWidth)
	for _, p := range pins {
		t.Add(names.Of(p.Stack), units.Bytes(p.Block).String(), duration(p.AgeNS),
			units.Bytes(p.Reserved).String(), units.Bytes(p.Reserved-p.Live).String(), strconv.Itoa(p.Blocks))
	}
	return t
}
