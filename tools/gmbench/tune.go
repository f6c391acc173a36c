package main

import (
	"fmt"
	"io"

	"gm/internal/bench/tuning"
	"gm/internal/cli"
	"gm/internal/units"
)

type tuneCmd struct {
	inputs `set:"folder=; of a job's ranks the trace of one, not their folder"`
	JSON   bool `name:"json" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *tuneCmd) Help() string {
	return "Example: gmbench tune --capacity 70GiB job.parquet\n\n" +
		"Replays the traces through PyTorch's caching allocator with many settings of PYTORCH_CUDA_ALLOC_CONF and prints the line to export: that with " +
		"the fewest retries, then the least memory at the peak, where each setting has to save 1 %, and then the least driver time. A request that failed " +
		"while a trace was recorded is the last of its replay."
}

// Run implements the command.
func (cmd *tuneCmd) Run(c *cli.Context) error {
	failed := failures{}
	programs, gpu, err := cmd.openBy(c, failed.read)
	if err != nil {
		return err
	}
	t := tuned{}
	for _, p := range programs {
		job, said, err := failed.job(p, gpu.Capacity)
		if err != nil {
			return err
		}
		t.jobs = append(t.jobs, job)
		if said != "" {
			t.said = append(t.said, said)
		}
		if p.Partial || len(p.Initial) > 0 {
			c.Warn("%s: recorded from a part of a run: memory in use at its beginning is requested like any other, so that peaks are approximate", p.Name)
		}
	}
	count := tuneCount{programs: len(programs)}
	line := c.Line(count.String)
	t.Result, err = tuning.Search(c.Context(), t.jobs, gpu.Costs, func() { count.done.Add(1) })
	line.End()
	if err != nil {
		return err
	}
	if cmd.JSON {
		err = t.writeJSON(c.Out)
	} else {
		err = t.write(c.Out)
	}
	if best := t.Best[0]; err == nil && best.OOMs > 0 {
		return fmt.Errorf("no setting that was tried runs the whole job in %s: at its peak the job holds %s", t.memory(), units.Bytes(t.Live))
	}
	return err
}

// memory says which memory the jobs run in.
func (t *tuned) memory() string {
	if room := t.room(); room > 0 {
		return units.Bytes(room).String()
	}
	return "the memory that there was"
}

// room returns the bytes that all jobs run in; 0 if they differ or have no limit.
func (t *tuned) room() int64 {
	for _, j := range t.jobs {
		if j.Room != t.jobs[0].Room {
			return 0
		}
	}
	return t.jobs[0].Room.Bytes
}

// tuned is the result that tune prints.
type tuned struct {
	*tuning.Result
	jobs []tuning.Job
	said []string // where requests failed
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
	var rooms []int64
	for _, j := range t.jobs {
		names = append(names, j.Name)
		rooms = append(rooms, j.Room.Bytes)
	}
	var best []*tunedJSON
	for _, o := range t.Best {
		best = append(best, newTunedJSON(o))
	}
	return cli.WriteJSON(w, struct {
		Traces     []string     `json:"traces"`
		Rooms      []int64      `json:"capacity_bytes_by_trace"` // 0 for no limit
		Live       int64        `json:"peak_live_bytes"`
		Tried      int          `json:"settings_tried"`
		Best       []*tunedJSON `json:"best"` // the first is the one to set
		Older      *tunedJSON   `json:"best_before_2_11"`
		Default    *tunedJSON   `json:"default"`
		Expandable *tunedJSON   `json:"expandable"`
		Recorded   *tunedJSON   `json:"recorded"` // null if recorded with the default, or each trace with its own
	}{names, rooms, t.Live, t.Tried, best, newTunedJSON(t.Older), newTunedJSON(t.Default), newTunedJSON(t.Expandable), newTunedJSON(t.Recorded)})
}
