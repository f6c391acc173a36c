// Package estimate foretells the memory of a training job: it executes the step of a GPU of each stage on tensors without contents, and replays
// the trace through allocators.
package estimate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"gm/formats/trace"
	"gm/internal/bench"
	"gm/internal/bench/fit"
	"gm/internal/bench/replay"
	"gm/internal/models/synth"
	"gm/internal/swap/link"
	"gm/internal/trace/failure"
	"gm/internal/trace/tags"
)

// Estimate is what a job needs.
type Estimate struct {
	Parameters int64     `json:"parameters"` // of the model
	GPUs       int64     `json:"gpus"`
	Free       float64   `json:"left_free"`     // the part of a card that is left free, since such jobs were found to take more
	Outside    int64     `json:"outside_bytes"` // what the GPU that has most has outside of PyTorch's allocator
	Stages     []Stage   `json:"stages"`
	Settings   []Setting `json:"settings"` // in the order of [Settings]
	Swap       Swap      `json:"swap"`
}

// Stage is what a GPU of a stage of the pipeline needs, in bytes.
type Stage struct {
	Stage    int64   `json:"stage"`
	Layers   int64   `json:"layers"`
	Live     int64   `json:"peak_live_bytes"`
	Parts    []Part  `json:"parts"` // of what is live at that peak
	Outside  Outside `json:"outside"`
	Reserved []int64 `json:"reserved_bytes"` // at the peak, by setting; 0 if the allocator fails

	least int64            // that must be there if the rest waits on the host
	step  []failure.Moment // of the last of the steps in which most lives
}

// Part is what tensors of a tag hold.
type Part struct {
	Tag   string `json:"tag"`
	Bytes int64  `json:"bytes"`
}

// Setting is an allocator with what the GPU that needs most reserves.
type Setting struct {
	Allocator string    `json:"allocator"`
	Reserved  int64     `json:"reserved_bytes"`
	Stage     int64     `json:"stage"` // that needs most
	Card      *fit.Card `json:"card"`  // the smallest that has that much; null if none has
}

// Settings lists the allocators, those that ask least of the user first: PyTorch's, the same with expandable_segments, gmstitch's, and
// gmstitch following a plan.
func Settings() []string { return []string{"torch", "expandable", "stitch", "planned"} }

// tagsShown are the parts of a stage, in the order of tables.
func tagsShown() []string {
	return []string{tags.Parameters, tags.Gradients, tags.Optimizer, tags.Activations, tags.Temporaries}
}

// steps is how many steps are executed, or as many as there are lengths: the second is the first with the states of the optimizer, and the third finds the memory that it left.
const steps = 3

// Of estimates a job. It calls done after each stage.
func Of(ctx context.Context, job *synth.Job, done func()) (*Estimate, error) {
	e := &Estimate{Parameters: job.Model.Parameters(), GPUs: job.GPUs(), Free: free(job)}
	for i := range job.Stages {
		s, err := stageOf(ctx, job.At(i))
		if err != nil {
			return nil, fmt.Errorf("estimate: %w", err)
		}
		e.Stages = append(e.Stages, *s)
		e.Outside = max(e.Outside, s.Outside.Sum())
		done()
	}
	for i, name := range Settings() {
		e.Settings = append(e.Settings, e.setting(i, name))
	}
	e.Swap = e.swap(link.Default())
	return e, nil
}

// freeOfSplit is the part of a card to be left free for a job whose layers, experts or stages are split: published peaks of such jobs are up to 14 %
// above their estimates (docs/estimate.md).
const freeOfSplit = 0.20

func free(job *synth.Job) float64 {
	if job.Tensor > 1 || job.Stages > 1 || job.Experts > 1 {
		return freeOfSplit
	}
	return 0
}

func stageOf(ctx context.Context, job *synth.Job) (*Stage, error) {
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{})
	if err := synth.Write(w, job, synth.Run{Seed: 1, Steps: max(steps, job.Lengths.Listed())}, func(int64, int64) {}); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	s := &Stage{Stage: job.Stage, Layers: job.LayersOfStage(), Outside: outsideOf(job)}
	var labels *tags.Tags
	for _, read := range []func(r *trace.Reader) error{
		s.parts, func(r *trace.Reader) error { return s.replay(ctx, r) },
		func(r *trace.Reader) (err error) { labels, err = tags.Derive(r); return err },
		func(r *trace.Reader) error { return s.follow(r, labels) },
	} {
		r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), fmt.Sprintf("stage %d", job.Stage))
		if err == nil {
			err = errors.Join(read(r), r.Close())
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// parts adds up what is live by tag, and keeps the sums of the moment at which most is.
func (s *Stage) parts(r *trace.Reader) error {
	live, most, sum := map[int32]int64{}, map[int32]int64{}, int64(0)
	err := trace.Each(r, func(_ int64, e *trace.Event) error {
		switch e.Op {
		case trace.OpAlloc:
			live[e.Tag] += e.Size
			sum += e.Size
		case trace.OpFreeCompleted:
			live[e.Tag] -= e.Size
			sum -= e.Size
		}
		if sum > s.Live {
			s.Live = sum
			for tag, n := range live {
				most[tag] = n
			}
		}
		return nil
	})
	byName := map[string]int64{}
	for tag, n := range most {
		byName[r.Strings().Text(tag)] += n
	}
	for _, name := range tagsShown() {
		s.Parts = append(s.Parts, Part{name, byName[name]})
	}
	return err
}

// replay runs the trace through each allocator, on a GPU without end.
func (s *Stage) replay(ctx context.Context, r *trace.Reader) error {
	programs, err := replay.Load(r)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := plan(ctx, p); err != nil {
			return err
		}
	}
	specs, err := bench.ParseSpecs(strings.Join(Settings(), ","))
	if err != nil {
		return err
	}
	rows, err := bench.Compare(ctx, programs, specs, 0, func() {})
	if err != nil {
		return err
	}
	for _, row := range rows {
		reserved := row.PeakReserved
		if row.OOM != nil {
			reserved = 0
		}
		s.Reserved = append(s.Reserved, reserved)
	}
	return nil
}

// setting finds the stage that needs most with an allocator, and the smallest card that has it.
func (e *Estimate) setting(index int, name string) Setting {
	s := Setting{Allocator: name}
	for _, stage := range e.Stages {
		if n := stage.Reserved[index]; n == 0 {
			return Setting{Allocator: name, Stage: stage.Stage}
		} else if n > s.Reserved {
			s.Reserved, s.Stage = n, stage.Stage
		}
	}
	for _, card := range fit.Cards() {
		if s.Reserved <= e.Usable(card) {
			s.Card = &card
			break
		}
	}
	return s
}

// Best returns the setting that needs the smallest card, the first of those; nil if no card has enough.
func (e *Estimate) Best() *Setting {
	var best *Setting
	for i := range e.Settings {
		if s := &e.Settings[i]; s.Card != nil && (best == nil || s.Card.Capacity < best.Card.Capacity) {
			best = s
		}
	}
	return best
}

// On returns the first setting that fits on a card, nil if none does.
func (e *Estimate) On(card fit.Card) *Setting {
	for i := range e.Settings {
		if s := &e.Settings[i]; s.Reserved > 0 && s.Reserved <= e.Usable(card) {
			return s
		}
	}
	return nil
}

// Left returns the bytes of a card that are left for tensors.
func (e *Estimate) Left(card fit.Card) int64 { return card.Left(e.Outside) }

// Usable returns the bytes of a card that the estimate may take: of what is left for tensors, without what is left free.
func (e *Estimate) Usable(card fit.Card) int64 { return int64((1 - e.Free) * float64(e.Left(card))) }
