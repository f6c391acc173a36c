// Package request holds what a program's runtime asks of the planner of swap schedules, a step that it recorded, and what it is answered:
// the JSON texts, and the check of an answer. Package answer makes answers.
package request

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/check"
)

// Request is a request for a schedule, as JSON.
type Request struct {
	Graph    Graph  `json:"graph"`
	Sizes    []Size `json:"sizes"`  // of steps for which schedules are wanted, that of the graph if there are none
	Device   int64  `json:"device"` // bytes that may be in use on the device
	Host     int64  `json:"host"`   // bytes of host memory
	Policy   string `json:"policy"`
	GPUs     int    `json:"gpus"`     // of this host that copy at the same time
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

	Handling swap.Handling `json:"handling"` // nanoseconds
	Complete bool          `json:"complete"` // all memory that the step takes is a tensor
	Shapes   bool          `json:"shapes"`   // nothing ran: what it is made from are shapes
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

// Op is an operator of a complete graph, else the stretch between two points.
type Op struct {
	Name     string      `json:"name"`
	Type     swap.OpType `json:"type"`
	Layer    int32       `json:"layer"`
	Phase    swap.Phase  `json:"phase"`
	NS       int64       `json:"ns"`
	LaunchNS int64       `json:"launch_ns"`
	Base     int64       `json:"base"`
	Reads    []string    `json:"reads"` // names of states, each once
	Changes  []string    `json:"changes"`
}

// Tensor is memory that the step takes in a complete graph, else what was saved.
type Tensor struct {
	Name        string    `json:"name"`
	DType       string    `json:"dtype"`
	Shape       string    `json:"shape"`
	Version     int64     `json:"version"`
	Bytes       int64     `json:"bytes"`
	Made        int32     `json:"made"`
	Uses        []int32   `json:"uses"`
	Changed     []int32   `json:"changed"`
	Layer       int32     `json:"layer"`
	Role        swap.Role `json:"role"`
	RecomputeNS int64     `json:"recompute_ns"`
	RelaunchNS  int64     `json:"relaunch_ns"`
	Scratch     int64     `json:"scratch"`
	From        []int32   `json:"from"`
	Row         int64     `json:"row"`
	Over        []int32   `json:"over"`
}

// Answer is a schedule and its predicted times and peaks, as JSON.
type Answer struct {
	Policy    string     `json:"policy"`
	Device    int64      `json:"device"` // the limit that it keeps to: above that of the request where that is not enough
	StepNS    int64      `json:"step_ns"`
	PlainNS   int64      `json:"plain_ns"` // of the step with nothing moved
	Peak      int64      `json:"peak"`
	PlainPeak int64      `json:"plain_peak"`
	Unfit     string     `json:"unfit"` // why the schedule that was named is not followed
	HostPeak  int64      `json:"host_peak"`
	Actions   [][4]int64 `json:"actions"` // kind, tensor, point, bytes
}

// MaxMemory bounds what a request may allow, so that what is missing can be added.
const MaxMemory = 1 << 61

// Read reads a request, a JSON text.
func Read(text []byte) (*Request, error) {
	var r Request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if r.Device < 0 || r.Device > MaxMemory || r.Host < 0 || r.Host > MaxMemory {
		return nil, fmt.Errorf("read the request: %d bytes of device memory, %d of host memory", r.Device, r.Host)
	}
	return &r, nil
}

// Check proves that an answer, a JSON text, is right for the request: that its schedule can be followed within the memory that it names.
func (r *Request) Check(text []byte) error {
	if len(r.Sizes) > 0 {
		return r.checkSizes(text)
	}
	var a Answer
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return r.check(&r.Graph, &a)
}

// check checks the answer for a graph.
func (r *Request) check(asked *Graph, a *Answer) error {
	for _, n := range []int64{a.Device, a.StepNS, a.PlainNS, a.Peak, a.PlainPeak, a.HostPeak} {
		if n < 0 {
			return fmt.Errorf("read the answer: %d is negative", n)
		}
	}
	s := &swap.Schedule{Policy: a.Policy, Actions: make([]swap.Action, len(a.Actions))}
	for i, x := range a.Actions {
		if x[0] < 0 || x[0] > int64(swap.Settle) || x[1] < 0 || x[1] > math.MaxInt32 || x[2] < 0 || x[2] > math.MaxInt32 || x[3] < 0 {
			return fmt.Errorf("read the answer: there is no action %v", x)
		}
		s.Actions[i] = swap.Action{Kind: swap.Kind(x[0]), Tensor: int32(x[1]), At: int32(x[2]), Bytes: x[3]}
	}
	g := asked.Swap()
	if err := g.Validate(); err != nil {
		return fmt.Errorf("the recorded step: %w", err)
	}
	if wrong := check.Check(g, s, swap.Limits{Device: a.Device, Host: r.Host}, nil); len(wrong) > 0 {
		return fmt.Errorf("the schedule cannot be followed: %s", wrong[0])
	}
	return nil
}

// Swap returns the graph as policies and the checker take it.
func (g *Graph) Swap() *swap.Graph {
	s := &swap.Graph{
		Name: g.Name, Device: g.Device, Complete: g.Complete, Handling: g.Handling, Ops: make([]swap.Op, len(g.Ops)), Tensors: make([]swap.Tensor, len(g.Tensors)),
	}
	numbers := map[string]int32{}
	for i, o := range g.Ops {
		s.Ops[i] = swap.Op{Name: o.Name, Type: o.Type, Layer: o.Layer, Phase: o.Phase, Duration: time.Duration(o.NS), Launch: time.Duration(o.LaunchNS), Base: o.Base}
		s.Ops[i].Reads, s.Ops[i].Changes = states(s, numbers, o.Reads), states(s, numbers, o.Changes)
	}
	for i, t := range g.Tensors {
		s.Tensors[i] = swap.Tensor{
			Name: t.Name, Bytes: t.Bytes, Made: t.Made, Uses: t.Uses, Layer: t.Layer, Role: t.Role,
			Changed: t.Changed, Over: t.Over, Recompute: time.Duration(t.RecomputeNS), From: t.From, Row: t.Row,
			Relaunch: time.Duration(t.RelaunchNS), Scratch: t.Scratch,
		}
	}
	return s
}

// states returns the numbers of states, ascending. New names become states of the graph.
func states(s *swap.Graph, numbers map[string]int32, names []string) []int32 {
	var list []int32
	for _, name := range names {
		state, ok := numbers[name]
		if !ok {
			state = int32(len(s.States))
			numbers[name] = state
			s.States = append(s.States, name)
		}
		list = append(list, state)
	}
	slices.Sort(list)
	return list
}
