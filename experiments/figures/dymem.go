package main

import (
	"errors"
	"fmt"
	"slices"

	"gm/internal/models/graphs"
	"gm/internal/swap"
	"gm/internal/swap/policy"
	"gm/internal/swap/simulate"
)

// Dymem's testbed (HPDC 2020, section 5): 12 GB, 32 GB of host memory, and a PCIe 3 link of 16 GB/s, of which copies of pinned memory get 12.
const (
	dymemLink   = bandwidth(12e9)
	dymemDevice = int64(12 << 30)
	dymemHost   = int64(32 << 30)
)

// recomputing is SuperNeurons with its recomputation, which the paper leaves out (section 4.1).
const recomputing = "superneurons, recomputing"

// dymemPolicies are those that the paper compares, of vDNN and of SuperNeurons each variant. The paper has vDNN's dynamic policy.
var dymemPolicies = []string{"vdnn-all", "vdnn-conv", "vdnn-dyn", "superneurons", recomputing, "dymem"}

// Their places in that.
const (
	vdnnAll      = 0
	vdnnDyn      = 2
	superNeurons = 3
	dymem        = 5
)

// dymemRun is a step of a network under a policy.
type dymemRun struct {
	model   *graphs.Model
	actions []swap.Action
	result  simulate.Result
}

// dymemStep runs a network under a policy in so much memory. It returns nil if the policy finds no schedule.
func dymemStep(m *graphs.Model, name string, device int64) (*dymemRun, error) {
	graph := m.Graph
	switch name {
	case "superneurons":
		graph = withoutRecomputation(graph)
	case recomputing:
		name = "superneurons"
	}
	p, err := policy.Lookup(name)
	if err != nil {
		return nil, err
	}
	s, err := p.Plan(graph, swap.Limits{Device: device, Host: dymemHost, Link: dymemLink})
	if _, short := errors.AsType[*policy.ShortError](err); short {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := simulate.Run(graph, s.Actions, dymemLink, nil)
	if err != nil {
		return nil, err
	}
	return &dymemRun{m, s.Actions, *r}, nil
}

// dymemIn12GB is dymemStep in the testbed's memory, in which there has to be a schedule.
func dymemIn12GB(m *graphs.Model, name string) (*dymemRun, error) {
	run, err := dymemStep(m, name, dymemDevice)
	if err == nil && run == nil {
		err = fmt.Errorf("%s: policy %s finds no schedule", m.Graph.Name, name)
	}
	return run, err
}

// withoutRecomputation returns a graph in which nothing can be computed again.
func withoutRecomputation(g *swap.Graph) *swap.Graph {
	plain := *g
	plain.Tensors = slices.Clone(g.Tensors)
	for i := range plain.Tensors {
		plain.Tensors[i].Recompute = 0
	}
	return &plain
}

// dymemLeast runs a network under a policy in the least memory in which it finds a schedule, to a MiB.
func dymemLeast(m *graphs.Model, name string) (*dymemRun, error) {
	best, err := dymemStep(m, name, 1<<40)
	if err == nil && best == nil {
		err = fmt.Errorf("policy %s finds no schedule in any memory", name)
	}
	if err != nil {
		return nil, err
	}
	for least := int64(0); best.result.Peak-least > 1<<20; {
		middle := (least + best.result.Peak) / 2
		run, err := dymemStep(m, name, middle)
		switch {
		case err != nil:
			return nil, err
		case run == nil:
			least = middle
		default:
			best = run
		}
	}
	return best, nil
}

// measureDymem simulates the figures and tables of the paper that have numbers, but for 12(b).
func measureDymem(e *experiment) error {
	for _, figure := range []func(*experiment) error{dymemKinds, dymemMemory, dymemThroughput, dymemOverlap, dymemBeta} {
		if err := figure(e); err != nil {
			return err
		}
		fmt.Println()
	}
	return nil
}
