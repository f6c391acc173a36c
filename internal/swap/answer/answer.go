// Package answer makes the swap schedules that programs request (package request), by policies.
package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"gm/formats/graph"
	"gm/internal/atomicfile"
	"gm/internal/swap"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/request"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/store"
)

// Make answers a request, a JSON text, by another. It also writes the graph's file, if the request names one.
func Make(text []byte) ([]byte, error) {
	r, err := request.Read(text)
	if err != nil {
		return nil, err
	}
	if len(r.Sizes) > 0 {
		return json.Marshal(sizes(r))
	}
	g := recorded(&r.Graph)
	if err := g.Validate(); err != nil {
		return nil, fmt.Errorf("the recorded step: %w", err)
	}
	if r.Record != "" {
		if err := atomicfile.Write(r.Record, func(w io.Writer) error { return store.WriteGraph(w, g) }); err != nil {
			return nil, err
		}
	}
	made, unfit, err := choose(r, g.Graph)
	if err != nil {
		return nil, err
	}
	a := described(made)
	if unfit != nil {
		a.Unfit = unfit.Error()
	}
	return json.Marshal(a)
}

// threads is how many schedules are made at a time: the job needs the processors more than the planner does.
const threads = 2

// sizes answers a request for several sizes.
func sizes(r *request.Request) *request.Answers {
	answers := &request.Answers{Sizes: make([]request.Sized, len(r.Sizes))}
	var next atomic.Int64
	var group sync.WaitGroup
	for range threads {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(r.Sizes)); i = next.Add(1) - 1 {
				answers.Sizes[i] = sized(r, &r.Sizes[i])
			}
		})
	}
	group.Wait()
	return answers
}

func sized(r *request.Request, size *request.Size) request.Sized {
	g, err := r.Graph.Sized(size)
	if err != nil {
		return request.Sized{Error: err.Error()}
	}
	step := g.Swap()
	if err := step.Validate(); err != nil {
		return request.Sized{Error: fmt.Sprintf("the recorded step: %v", err)}
	}
	made, _, err := choose(r, step)
	if err != nil {
		return request.Sized{Error: err.Error()}
	}
	return request.Sized{Answer: *described(made)}
}

// choose returns the schedule that a request names, or else one that its policy makes, and why it is not the one that was named.
func choose(r *request.Request, g *swap.Graph) (made *scheduling.Made, unfit, err error) {
	figures := link.Default()
	if r.Link != "" {
		var err error
		if figures, err = link.Read(r.Link); err != nil {
			return nil, nil, err
		}
	}
	p, err := policy.Lookup(r.Policy)
	if err != nil {
		return nil, nil, err
	}
	limits := scheduling.Limits{Device: r.Device, Host: r.Host, Link: figures, GPUs: r.GPUs, Spare: spare}
	if r.Schedule != "" {
		if made, unfit = take(r.Schedule, g, limits); unfit == nil {
			return made, nil, nil
		}
	}
	made, err = scheduling.Make(g, p, limits)
	for try := 0; try < tries; try++ {
		short, ok := errors.AsType[*policy.ShortError](err)
		if !ok || short.Host {
			break
		}
		limits.Device += short.Bytes
		made, err = scheduling.Make(g, p, limits)
	}
	return made, unfit, err
}

// take returns the schedule of a file. The error is why it is not one for the graph.
func take(file string, g *swap.Graph, limits scheduling.Limits) (*scheduling.Made, error) {
	s, err := store.ReadSchedule(file)
	if err != nil {
		return nil, err
	}
	if s.Meta.Operators != int64(len(g.Ops)) || s.Meta.Tensors != int64(len(g.Tensors)) {
		return nil, fmt.Errorf("schedule %s is for a step of %d operators and %d tensors, this one has %d and %d",
			file, s.Meta.Operators, s.Meta.Tensors, len(g.Ops), len(g.Tensors))
	}
	made, err := scheduling.Take(g, s.Schedule, limits)
	if err != nil {
		return nil, fmt.Errorf("schedule %s is not right for this step: %w", file, err)
	}
	return made, nil
}

// spare is the share of the link's bandwidth that schedules leave unused. On H200s at their power limit a forward pass takes 5 % less or
// more than in the step before.
const spare = 0.05

// tries is how often the limit is raised where no schedule fits: a policy may report too little as missing.
const tries = 4

func described(m *scheduling.Made) *request.Answer {
	a := &request.Answer{
		Policy: m.Policy, Device: m.Meta.DeviceBudget, StepNS: int64(m.Moved.Step), PlainNS: int64(m.Plain.Step),
		Peak: m.Moved.Peak, PlainPeak: m.Plain.Peak, HostPeak: m.Meta.HostPeak,
		Actions: make([][4]int64, len(m.Actions)),
	}
	for i, x := range m.Actions {
		a.Actions[i] = [4]int64{int64(x.Kind), int64(x.Tensor), int64(x.At), x.Bytes}
	}
	return a
}

// recorded returns the graph as files have it.
func recorded(g *request.Graph) *store.Graph {
	p := g.Meta
	s := &store.Graph{Graph: g.Swap(), Recorded: make([]store.Recorded, len(g.Tensors)), Meta: graph.Meta{
		Capacity: p.Capacity, Source: graph.SourceRecorded, Host: p.Host, PID: p.PID, Rank: p.Rank, LocalRank: p.LocalRank,
		WorldSize: p.WorldSize, Command: p.Command,
	}}
	if g.Shapes {
		s.Meta.Source = graph.SourceShapes
	}
	for i, t := range g.Tensors {
		saved := int32(i)
		if g.Complete {
			saved = -1 // what autograd saved is among the others
		}
		s.Recorded[i] = store.Recorded{Saved: saved, Version: t.Version, DType: t.DType, Shape: t.Shape}
	}
	return s
}
