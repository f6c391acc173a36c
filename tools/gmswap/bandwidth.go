package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"gm/internal/cli"
	"gm/internal/cuda/driver"
	"gm/internal/report"
	"gm/internal/swap/link"
	"gm/internal/units"
)

type bandwidthCmd struct {
	Output  string `short:"o" placeholder:"FILE" help:"Where the figures go as JSON, for --link. Standard output by default."`
	Devices []int  `placeholder:"N" help:"Numbers of the GPUs, all by default."`
	JSON    bool   `name:"json" help:"Print no table: JSON on standard output."`
}

// Help implements kong.HelpProvider.
func (cmd *bandwidthCmd) Help() string {
	return "Example: gmswap bandwidth -o link.json && gmswap run --link link.json -m 40GiB -- python train.py\n\n" +
		"Copies of 64 KiB to 1 GiB between each GPU and pinned memory of the host, one way, both ways at once, and on all GPUs at once. Takes " +
		"some seconds, 2 GiB of host memory for each GPU and half of what is free of its own at most. GPUs and host should have nothing else to do."
}

// Run implements the command.
func (cmd *bandwidthCmd) Run(c *cli.Context) error {
	toFile := cmd.Output != "" && cmd.Output != "-"
	if err := cli.CheckFiles(nil, []string{cmd.Output}); err != nil {
		return err
	}
	l, err := driver.Load()
	if err != nil {
		return err
	}
	ordinals, err := cmd.ordinals(l)
	if err != nil {
		return err
	}
	measured, err := measure(c, l, ordinals)
	if err != nil {
		return err
	}
	if toFile {
		if err := c.File(cmd.Output, measured.Write); err != nil {
			return err
		}
	}
	switch table := linkTable(measured); {
	case cmd.JSON:
		return measured.Write(c.Out)
	case toFile:
		return table(c.Out)
	default:
		return errors.Join(table(c.Err), measured.Write(c.Out))
	}
}

// ordinals returns the numbers of the GPUs to measure.
func (cmd *bandwidthCmd) ordinals(l *driver.Library) ([]int, error) {
	all := slices.Compact(slices.Sorted(slices.Values(cmd.Devices)))
	if len(all) < len(cmd.Devices) {
		return nil, cli.Usage("--devices: a GPU is there twice")
	}
	if len(all) > 0 {
		return all, nil
	}
	n, err := l.Devices()
	if err == nil && n == 0 {
		err = errors.New("no GPU was found")
	}
	for i := range n {
		all = append(all, i)
	}
	return all, err
}

// measure measures the link of some GPUs.
func measure(c *cli.Context, l *driver.Library, ordinals []int) (_ *link.Link, err error) {
	var devices []link.Device
	for _, i := range ordinals {
		d, err := l.Open(i)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		devices = append(devices, d)
	}
	progress := c.Progress("measure", int64(link.Steps(len(devices))))
	defer progress.End()
	measured, err := link.Measure(devices, link.Options{Driver: driver.KernelVersion(), Done: func() { progress.Add(1) }})
	if err != nil {
		return nil, err
	}
	for i := range measured.GPUs {
		measured.GPUs[i].Ordinal = ordinals[i]
	}
	return measured, nil
}

// linkTable returns a function that prints the figures.
func linkTable(l *link.Link) func(io.Writer) error {
	copies := &report.Table{Titles: []string{"GPU", "copies of", "out", "in", "out and in at once", ""}}
	pinning := &report.Table{Titles: []string{"GPU", "NUMA node", "touch 1 GiB", "pin 1 GiB", "memory slowed down by copies"}}
	for i := range l.GPUs {
		g := &l.GPUs[i]
		for _, rates := range []struct {
			all  []link.Rate
			note string
		}{{g.Alone, ""}, {g.Together, fmt.Sprintf("all %d GPUs at once", len(l.GPUs))}} {
			for _, r := range rates.all {
				copies.Add(strconv.Itoa(g.Ordinal), units.Bytes(r.Bytes).String(), rateText(r.Out), rateText(r.In),
					rateText(r.BothOut)+" + "+rateText(r.BothIn), rates.note)
			}
		}
		node := "-"
		if g.NUMANode >= 0 {
			node = strconv.Itoa(g.NUMANode)
		}
		pinning.Add(strconv.Itoa(g.Ordinal), node, timeText(time.Duration(g.TouchNS)), timeText(time.Duration(g.RegisterNS)),
			fmt.Sprintf("%.2f times", g.MemorySlowdown))
	}
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n\n", report.Printable(l.Device))
		if err == nil {
			err = copies.Write(w)
		}
		if err == nil {
			_, err = fmt.Fprintln(w)
		}
		if err == nil {
			err = pinning.Write(w)
		}
		return err
	}
}

// rateText returns bytes a second as they are usually told: in powers of 1000.
func rateText(rate int64) string { return fmt.Sprintf("%.1f GB/s", float64(rate)/1e9) }
