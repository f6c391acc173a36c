package main

import (
	"cmp"
	"fmt"
	"io"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/bench/tuning"
	"gm/internal/cli"
	"gm/internal/cuda/sim"
	"gm/internal/units"
)

type tuneCmd struct {
	inputs
	JSON bool `name:"json" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *tuneCmd) Help() string {
	return "Example: gmbench tune --capacity 70GiB job.parquet\n\n" +
		"Replays the traces through PyTorch's caching allocator with many settings of PYTORCH_CUDA_ALLOC_CONF and prints the line to export: that with " +
		"the fewest retries, then the least memory at the peak, where each setting has to save 1 %, and then the least driver time."
}

// Run implements the command.
func (cmd *tuneCmd) Run(c *cli.Context) error {
	programs, gpu, err := cmd.open(c)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if p.Partial || len(p.Initial) > 0 {
			c.Warn("%s: recorded from a part of a run: memory in use at its beginning is requested like any other, so that peaks are approximate", p.Name)
		}
	}
	count := tuneCount{programs: len(programs)}
	line := c.Line(count.String)
	found, err := tuning.Search(c.Context(), programs, gpu, func() { count.done.Add(1) })
	line.End()
	if err != nil {
		return err
	}
	t := tuned{found, programs, gpu}
	if cmd.JSON {
		err = t.writeJSON(c.Out)
	} else {
		err = t.write(c.Out)
	}
	if best := found.Best[0]; err == nil && best.OOMs > 0 {
		capacity := cmp.Or(cmd.Capacity, sim.Endless)
		return fmt.Errorf("no setting that was tried runs the whole job in %s: at its peak the job holds %s", capacity, units.Bytes(found.Live))
	}
	return err
}

// tuned is the result that tune prints.
type tuned struct {
	*tuning.Result
	programs []*replay.Program
	gpu      bench.GPU
}

// variable is the environment variable of PyTorch's settings.
const variable = "PYTORCH_CUDA_ALLOC_CONF"

// tunedJSON is an outcome as JSON.
type tunedJSON struct {
	Settings string  `json:"settings"` // the value of PYTORCH_CUDA_ALLOC_CONF
	Peak     int64   `json:"peak_reserved_bytes"`
	Peaks    []int64 `json:"peak_reserved_bytes_by_trace"`
	Calls    int64   `json:"driver_calls"`
	DriverNS int64   `json:"driver_ns"`
	Retries  int64   `json:"retries"`
	OOMs     int     `json:"ooms"`
}

func newTunedJSON(o *tuning.Outcome) *tunedJSON {
	if o == nil {
		return nil
	}
	return &tunedJSON{o.Setting.String(), o.Peak, o.Peaks, o.Calls, o.DriverNS, o.Retries, o.OOMs}
}

func (t *tuned) writeJSON(w io.Writer) error {
	var names []string
	for _, p := range t.programs {
		names = append(names, p.Name)
	}
	var best []*tunedJSON
	for _, o := range t.Best {
		best = append(best, newTunedJSON(o))
	}
	return cli.WriteJSON(w, struct {
		Traces     []string     `json:"traces"`
		Live       int64        `json:"peak_live_bytes"`
		Tried      int          `json:"settings_tried"`
		Best       []*tunedJSON `json:"best"` // the first is the one to set
		Older      *tunedJSON   `json:"best_before_2_11"`
		Default    *tunedJSON   `json:"default"`
		Expandable *tunedJSON   `json:"expandable"`
		Recorded   *tunedJSON   `json:"recorded"` // null if recorded with the default, or each trace with its own
	}{names, t.Live, t.Tried, best, newTunedJSON(t.Older), newTunedJSON(t.Default), newTunedJSON(t.Expandable), newTunedJSON(t.Recorded)})
}
