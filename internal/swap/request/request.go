// Package request answers what a program's runtime asks: which schedule to follow, for a step that it recorded.
package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gm/formats/graph"
	"gm/internal/atomicfile"
	"gm/internal/swap"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/store"
)

// Request is what is asked, as JSON.
type Request struct {
	Graph    Graph  `json:"graph"`
	Device   int64  `json:"device"` // bytes that may be in use on the device
	Host     int64  `json:"host"`   // bytes of host memory
	Policy   string `json:"policy"`
	GPUs     int    `json:"gpus"`     // of this host whose processes copy at the same time
	Link     string `json:"link"`     // file of the link's figures; those of an H200 by default
	Record   string `json:"record"`   // file that the graph is written to, if named
	Schedule string `json:"schedule"` // file of a schedule to follow, if named and if it is for such a step
}

// Graph is a recorded step.
type Graph struct {
	Name    string   `json:"name"`
	Device  string   `json:"device"`
	Meta    Process  `json:"process"`
	Ops     []Op     `json:"ops"`
	Tensors []Tensor `json:"tensors"`
}

// Process is where a step was recorded.
type Process struct {
	Capacity  int64  `json:"capacity"` // bytes of memory of the device
	Host      string `json:"host"`
	PID       int64  `json:"pid"`
	Rank      int64  `json:"rank"`
	LocalRank int64  `json:"local_rank"`
	WorldSize int64  `json:"world_size"`
	Command   string `json:"command"`
}

// Op is an operator of a step: the stretch between two points.
type Op struct {
	Name  string     `json:"name"`
	Layer int32      `json:"layer"`
	Phase swap.Phase `json:"phase"`
	NS    int64      `json:"ns"`
	Base  int64      `json:"base"`
}

// Tensor is what was saved.
type Tensor struct {
	Name        string    `json:"name"`
	DType       string    `json:"dtype"`
	Shape       string    `json:"shape"`
	Version     int64     `json:"version"`
	Bytes       int64     `json:"bytes"`
	Made        int32     `json:"made"`
	Uses        []int32   `json:"uses"`
	Layer       int32     `json:"layer"`
	Role        swap.Role `json:"role"`
	RecomputeNS int64     `json:"recompute_ns"`
	From        []int32   `json:"from"`
	Row         int64     `json:"row"`
}

// Answer is a schedule and what it is foreseen to come to, as JSON.
type Answer struct {
	Policy    string     `json:"policy"`
	Device    int64      `json:"device"` // what it keeps to: more than was asked for where that is not enough
	StepNS    int64      `json:"step_ns"`
	PlainNS   int64      `json:"plain_ns"` // of the step with nothing moved
	Peak      int64      `json:"peak"`
	PlainPeak int64      `json:"plain_peak"`
	Unfit     string     `json:"unfit"` // why the schedule that was named is not followed
	HostPeak  int64      `json:"host_peak"`
	Actions   [][4]int64 `json:"actions"` // kind, tensor, point, bytes
}

// Make makes a schedule as a request, a JSON text, asks for it, and returns the answer, another.
func Make(text []byte) ([]byte, error) {
	var r Request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if r.Device < 0 || r.Device > maxMemory || r.Host < 0 || r.Host > maxMemory {
		return nil, fmt.Errorf("read the request: %d bytes of device memory, %d of host memory", r.Device, r.Host)
	}
	g := r.Graph.recorded()
	if err := g.Validate(); err != nil {
		return nil, fmt.Errorf("the recorded step: %w", err)
	}
	if r.Record != "" {
		if err := atomicfile.Write(r.Record, func(w io.Writer) error { return store.WriteGraph(w, g) }); err != nil {
			return nil, err
		}
	}
	made, unfit, err := r.make(g.Graph)
	if err != nil {
		return nil, err
	}
	a := answer(made)
	if unfit != nil {
		a.Unfit = unfit.Error()
	}
	return json.Marshal(a)
}

// maxMemory bounds what a request may allow, so that what is missing can be added.
const maxMemory = 1 << 61

// make returns the schedule that was named, or else one that a policy makes, and why it is not the one that was named.
func (r *Request) make(g *swap.Graph) (made *scheduling.Made, unfit, err error) {
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
		return nil, fmt.Errorf("schedule %s is for a step of %d operators and %d tensors, this one has %d and %d", file, s.Meta.Operators, s.Meta.Tensors, len(g.Ops), len(g.Tensors))
	}
	made, err := scheduling.Take(g, s.Schedule, limits)
	if err != nil {
		return nil, fmt.Errorf("schedule %s is not right for this step: %w", file, err)
	}
	return made, nil
}

// spare is the share of the link's bandwidth that schedules leave alone. On H200s at the limit of their power a forward pass takes 5 % less or
// more than in the step before.
const spare = 0.05

// tries is how often a schedule for more memory is made where there is none for what was asked: what is missing may be told too low.
const tries = 4

func answer(m *scheduling.Made) *Answer {
	a := &Answer{
		Policy: m.Policy, Device: m.Meta.DeviceBudget, StepNS: int64(m.Moved.Step), PlainNS: int64(m.Plain.Step), Peak: m.Moved.Peak, PlainPeak: m.Plain.Peak, HostPeak: m.Meta.HostPeak,
		Actions: make([][4]int64, len(m.Actions)),
	}
	for i, x := range m.Actions {
		a.Actions[i] = [4]int64{int64(x.Kind), int64(x.Tensor), int64(x.At), x.Bytes}
	}
	return a
}

// recorded returns the graph as files have it.
func (g *Graph) recorded() *store.Graph {
	s := &store.Graph{Graph: &swap.Graph{Name: g.Name, Device: g.Device, Ops: make([]swap.Op, len(g.Ops)), Tensors: make([]swap.Tensor, len(g.Tensors))}}
	s.Recorded = make([]store.Recorded, len(g.Tensors))
	p := g.Meta
	s.Meta = graph.Meta{
		Capacity: p.Capacity, Source: graph.SourceRecorded, Host: p.Host, PID: p.PID, Rank: p.Rank, LocalRank: p.LocalRank, WorldSize: p.WorldSize, Command: p.Command,
	}
	for i, o := range g.Ops {
		s.Ops[i] = swap.Op{Name: o.Name, Layer: o.Layer, Phase: o.Phase, Duration: time.Duration(o.NS), Base: o.Base}
	}
	for i, t := range g.Tensors {
		s.Tensors[i] = swap.Tensor{
			Name: t.Name, Bytes: t.Bytes, Made: t.Made, Uses: t.Uses, Layer: t.Layer, Role: t.Role,
			Recompute: time.Duration(t.RecomputeNS), From: t.From, Row: t.Row,
		}
		s.Recorded[i] = store.Recorded{Saved: int32(i), Version: t.Version, DType: t.DType, Shape: t.Shape}
	}
	return s
}
