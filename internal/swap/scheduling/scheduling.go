// Package scheduling makes a schedule of a graph by a policy, with what its file holds: places in host memory, predicted times and peaks.
package scheduling

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/check"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/simulate"
	"gm/internal/swap/store"
)

// Made is a schedule, with the simulation of a step that follows it and of one with nothing moved.
type Made struct {
	*store.Schedule
	Moved, Plain *simulate.Result
}

// Limits are what a schedule has to keep to, and the link's figures, which its file holds.
type Limits struct {
	Device, Host int64 // bytes
	Link         *link.Link
	GPUs         int // that copy at the same time; 0 is one

	// Spare is the share of the link's bandwidth that policies leave alone, less than 1. Operators take longer in one step and less
	// in another: where the copies of a pass just fit beside it, it waits for them in the steps that are faster.
	Spare float64
}

// Copies returns the link with all the GPUs at work.
func (l *Limits) Copies() swap.Copier { return l.Link.Under(link.Load{GPUs: l.GPUs}) }

// spared returns the link as policies take it.
func (l *Limits) spared() swap.Copier { return slower{l.Copies(), 1 / (1 - l.Spare)} }

// slower is a link on which copies take longer by a factor.
type slower struct {
	swap.Copier
	times float64
}

func (s slower) OutTime(bytes int64) time.Duration {
	return time.Duration(float64(s.Copier.OutTime(bytes)) * s.times)
}

func (s slower) InTime(bytes int64) time.Duration {
	return time.Duration(float64(s.Copier.InTime(bytes)) * s.times)
}

// Make makes a schedule of g, which has to be valid, by a policy. The error of a policy that finds none is a *policy.ShortError.
func Make(g *swap.Graph, p policy.Policy, limits Limits) (m *Made, err error) {
	MakeEach(g, p, limits, []int64{limits.Device}, func(_ int, made *Made, failed error) { m, err = made, failed })
	return m, err
}

// MakeEach makes schedules as [Make] does, for some amounts of device memory in place of that of the limits, in ascending order. It calls
// visit with each.
func MakeEach(g *swap.Graph, p policy.Policy, limits Limits, devices []int64, visit func(i int, m *Made, err error)) {
	p.PlanEach(g, swap.Limits{Host: limits.Host, Link: limits.spared()}, devices, func(i int, s *swap.Schedule, err error) {
		if err != nil {
			visit(i, nil, err)
			return
		}
		l := limits
		l.Device = devices[i]
		m, err := describe(g, s, l)
		if err != nil {
			err = fmt.Errorf("BUG: policy %s made a schedule that cannot be followed: %w", s.Policy, err)
		}
		visit(i, m, err)
	})
}

// Take takes a schedule that was made elsewhere, for a step that went as that of g does. The error is what is wrong with it for g within
// the limits.
func Take(g *swap.Graph, s *swap.Schedule, limits Limits) (*Made, error) {
	if wrong := check.Check(g, s, swap.Limits{Device: limits.Device, Host: limits.Host}, nil); len(wrong) > 0 {
		return nil, errors.New(wrong[0].String())
	}
	return describe(g, s, limits)
}

// describe returns a schedule with what its file holds.
func describe(g *swap.Graph, s *swap.Schedule, limits Limits) (_ *Made, err error) {
	m := &Made{Schedule: &store.Schedule{Schedule: s}}
	copies := limits.Copies()
	if m.Plain, err = simulate.Run(g, nil, copies, nil); err != nil {
		return nil, err
	}
	if m.Moved, err = simulate.Run(g, s.Actions, copies, nil); err != nil {
		return nil, err
	}
	figures, err := json.Marshal(limits.Link)
	if err != nil {
		return nil, err
	}
	m.Meta.DeviceBudget, m.Meta.HostBudget, m.Meta.Link = limits.Device, limits.Host, string(figures)
	m.Meta.GPUs = int64(limits.GPUs)
	m.Meta.StepNS, m.Meta.Peak = int64(m.Moved.Step), m.Moved.Peak
	m.place(g)
	return m, nil
}

// place gives each copy a place in host memory.
func (m *Made) place(g *swap.Graph) {
	m.Slots = make([]int64, len(m.Actions))
	for i := range m.Slots {
		m.Slots[i] = -1
	}
	for _, slot := range check.Slots(g, m.Actions) {
		m.Slots[slot.Action] = slot.Offset
		m.Meta.HostPeak = max(m.Meta.HostPeak, slot.Offset+slot.Bytes)
	}
	last := map[int32]int64{}
	for i, a := range m.Actions {
		switch a.Kind {
		case swap.Offload:
			last[a.Tensor] = m.Slots[i]
		case swap.Prefetch:
			m.Slots[i] = last[a.Tensor]
		}
	}
}
