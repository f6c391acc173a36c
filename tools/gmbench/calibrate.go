package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"gm/internal/cli"
	"gm/internal/cuda"
	"gm/internal/cuda/calibrate"
	"gm/internal/cuda/driver"
	"gm/internal/cuda/sim"
	"gm/internal/report"
	"gm/internal/units"
)

type calibrateCmd struct {
	Output string `short:"o" placeholder:"FILE" help:"File for the costs as JSON. Standard output by default."`
	Device int    `placeholder:"N" help:"Number of the GPU, 0 by default."`
}

// Help implements kong.HelpProvider.
func (cmd *calibrateCmd) Help() string {
	return "Uses at most a quarter of the free memory, for some seconds. The GPU should have nothing else to do.\n\n" +
		"Example: gmbench calibrate -o costs.json && gmbench --costs costs.json job.parquet"
}

// Run implements the command.
func (cmd *calibrateCmd) Run(c *cli.Context) error {
	if err := cli.CheckFiles(nil, []string{cmd.Output}); err != nil {
		return err
	}
	l, err := driver.Load()
	if err != nil {
		return err
	}
	measured, err := cmd.measure(c, l)
	if err != nil {
		return err
	}
	if cmd.Output == "" || cmd.Output == "-" {
		return errors.Join(costTable(measured.Costs).Write(c.Err), measured.Write(c.Out))
	}
	if err := c.File(cmd.Output, func(w io.Writer) error { return measured.Write(w) }); err != nil {
		return err
	}
	return costTable(measured.Costs).Write(c.Out)
}

func (cmd *calibrateCmd) measure(c *cli.Context, l *driver.Library) (measured sim.Calibration, err error) {
	version, err := l.Version()
	if err != nil {
		return measured, err
	}
	d, err := l.Open(cmd.Device)
	if err != nil {
		return measured, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	var streams [2]cuda.Stream
	for i := range streams {
		if streams[i], err = d.StreamCreate(); err != nil {
			return measured, err
		}
		defer func() { err = errors.Join(err, d.StreamDestroy(streams[i])) }()
	}
	measured = sim.Calibration{Device: d.Name(), Driver: driver.KernelVersion(), CUDA: fmt.Sprintf("%d.%d", version/1000, version%1000/10)}
	progress := c.Progress("calibrate", int64(calibrate.Steps))
	measured.Costs, err = calibrate.Costs(d, streams, func() { progress.Add(1) })
	progress.End()
	return measured, err
}

func costTable(costs sim.CostTable) *report.Table {
	t := &report.Table{Titles: []string{"call", "size", "cost"}}
	for call, curve := range costs {
		for _, p := range curve {
			size := "-"
			if p.Bytes > 0 {
				size = units.Bytes(p.Bytes).String()
			}
			t.Add(sim.Call(call).String(), size, fmt.Sprintf("%.2f us", float64(p.Cost)/float64(time.Microsecond)))
		}
	}
	return t
}
