package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/bench/remedy"
	"gm/internal/bench/replay"
	"gm/internal/cli"
	"gm/internal/trace/changes"
	"gm/internal/trace/failure"
	"gm/internal/trace/input"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
)

type whyOOMCmd struct {
	File string `arg:"" optional:"" name:"trace" help:"The trace, or a recording that gmtrace import reads, such as a PyTorch snapshot. Standard input by default, or for '-'."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *whyOOMCmd) Help() string {
	return "Looks at the last request on each GPU that failed: whether the memory was full, fragmented or limited, who held it, and with which " +
		"settings, allocator or card the request would have been met.\n\n" +
		"Example: gmtrace why-oom snapshot.pickle\n\nExample: gmtrace run --stacks python -o job.parquet -- python train.py; gmtrace why-oom job.parquet"
}

// whyOOM is what is said of a trace.
type whyOOM struct {
	Source string `json:"source"`
	Midway bool   `json:"begins_midway"` // memory was in use when the recording began

	unrecorded bool         // it has no history
	Failures   []*oomOf     `json:"failures"`
	Peaks      []devicePeak `json:"peaks"`

	overview *overview.Overview
}

// oomOf is the failure on one device.
type oomOf struct {
	*failure.Failure
	Holders *overview.Moment `json:"holders"`
	Leaks   []changes.Leak   `json:"leaks"`
	Replays *remedy.Results  `json:"replays"` // nil if the trace has not what it takes to replay the request
	Movable *failure.Movable `json:"gmswap"`  // nil if the tags do not say what gmswap run could move
}

// devicePeak is the peak of a device.
type devicePeak struct {
	Device   int32 `json:"device"`
	Row      int64 `json:"row"`
	TimeNS   int64 `json:"time_ns"`
	Live     int64 `json:"live_bytes"`
	Reserved int64 `json:"reserved_bytes"` // most, at any time; 0 if it was not recorded
}

// Run implements the command.
func (cmd *whyOOMCmd) Run(c *cli.Context) (err error) {
	source, err := input.Open(c, cmd.File)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	w, err := explainOOM(c, source)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, w)
	}
	var out strings.Builder
	if err := w.print(&out); err != nil {
		return err
	}
	_, err = io.WriteString(c.Out, out.String())
	return err
}

// explainOOM reads a trace from a source, which it closes.
func explainOOM(c *cli.Context, source *column.Source) (w *whyOOM, err error) {
	o, err := trace.ReadSource(source, overview.Read)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	warnOf(c, source, o)
	w = &whyOOM{Source: o.Source, Failures: []*oomOf{}, Peaks: []devicePeak{}, overview: o}
	for _, d := range o.Devices {
		if d.Framework() {
			w.Peaks = append(w.Peaks, devicePeak{d.Ordinal, d.PeakRow, d.PeakNS, d.PeakLive, d.PeakReserved})
		}
	}
	w.unrecorded = o.Unrecorded()
	if w.Midway, err = trace.ReadSource(source, beginsMidway); err == nil {
		err = w.addFailures(c, source)
	}
	if err != nil || len(w.Failures) == 0 {
		return w, errors.Join(err, source.Close())
	}
	programs, err := replay.Read(source)
	if err != nil {
		return nil, err
	}
	return w, w.addReplays(c.Context(), programs)
}

// beginsMidway reports whether the first row is older than the recording.
func beginsMidway(r *trace.Reader) (bool, error) {
	b, err := r.Next()
	if err != nil || b.Len() == 0 {
		return false, unlessEOF(err)
	}
	_, older := trace.ParsePreexisting(r.Strings().Text(b.Tag[0]))
	return older, nil
}

func unlessEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// addFailures finds the requests that failed.
func (w *whyOOM) addFailures(c *cli.Context, source *column.Source) error {
	failures, err := trace.ReadSource(source, func(r *trace.Reader) ([]*failure.Failure, error) { return failure.Read(r, w.overview) })
	if err != nil {
		return err
	}
	return w.addHolders(c, source, failures)
}

// addHolders finds out who held the memory when requests failed, and what leaks.
func (w *whyOOM) addHolders(c *cli.Context, source *column.Source, failures []*failure.Failure) error {
	if len(failures) == 0 {
		return nil
	}
	labels, err := trace.ReadSource(source, tags.Derive)
	if err != nil {
		return err
	}
	leaks, err := leaksOf(c, source, w.overview)
	if err != nil {
		return err
	}
	movable, err := trace.ReadSource(source, func(r *trace.Reader) (map[int32]*failure.Movable, error) {
		return failure.ReadMovable(r, failures, labels)
	})
	if err != nil {
		return err
	}
	for _, f := range failures {
		tops, err := trace.ReadSource(source, func(r *trace.Reader) ([]*overview.Top, error) {
			return overview.ReadTop(r, w.overview, overview.Look{Groups: maxHolders, Tags: labels, At: &f.Row})
		})
		if err != nil {
			return err
		}
		of := &oomOf{Failure: f, Leaks: slices.DeleteFunc(slices.Clone(leaks), func(l changes.Leak) bool { return l.Device != f.Device })}
		if m := movable[f.Device]; f.By == "" && m.Known(f) {
			of.Movable = m
		}
		for _, top := range tops {
			if top.Device == f.Device && len(top.Moments) > 0 {
				of.Holders = top.Moments[0]
			}
		}
		w.Failures = append(w.Failures, of)
	}
	return nil
}

// addReplays replays the requests up to those that failed.
func (w *whyOOM) addReplays(ctx context.Context, programs []*replay.Program) (err error) {
	for _, p := range programs {
		for _, of := range w.Failures {
			if of.Device != p.Device || of.Cause == failure.Unknown || of.By != "" {
				continue
			}
			if of.Replays, err = remedy.Replay(ctx, p, of.Failure); err != nil {
				return err
			}
		}
	}
	return nil
}
