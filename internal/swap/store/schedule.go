package store

import (
	"errors"
	"fmt"
	"io"

	"gm/formats/schedule"
	"gm/internal/swap"
)

// Schedule is a schedule with what its file says beside it.
type Schedule struct {
	*swap.Schedule
	Slots []int64 // by action, the offset in bytes of a copy's place in host memory, -1 for none; nil when no action has one
	Meta  schedule.Meta
	File  string // what the file that it was read from is called in errors
}

// ReadSchedule reads a schedule from the named file, or from standard input for "-" or "". Whether it can be carried out is not looked at:
// see Fits, and package simulate.
func ReadSchedule(name string) (s *Schedule, err error) {
	r, err := schedule.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return readSchedule(r)
}

func readSchedule(r *schedule.Reader) (*Schedule, error) {
	meta := r.Meta()
	s := &Schedule{Schedule: &swap.Schedule{Policy: meta.Policy}, Meta: meta, File: r.Name()}
	placed := false
	err := schedule.Each(r, func(a *schedule.Action) error {
		s.Actions = append(s.Actions, swap.Action{Kind: swap.Kind(a.Kind), Tensor: int32(a.Tensor), At: int32(a.Operator), Bytes: a.Bytes})
		s.Slots = append(s.Slots, a.Slot)
		placed = placed || a.Slot >= 0
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !placed {
		s.Slots = nil
	}
	return s, nil
}

// Fits returns an error unless the schedule was made for that graph, and each of its actions is about a part of a tensor that is in it.
func (s *Schedule) Fits(g *Graph) error {
	if s.Meta.Digest != g.Digest {
		return fmt.Errorf("schedule %s was made for another graph than %s: %q, digest %.16s, and not %q, digest %.16s",
			s.File, g.File, s.Meta.Graph, s.Meta.Digest, g.Name, g.Digest)
	}
	for i, a := range s.Actions {
		switch {
		case a.Tensor < 0 || int(a.Tensor) >= len(g.Tensors) || a.At < 0 || int(a.At) >= len(g.Ops):
			return fmt.Errorf("schedule %s: row %d: tensor %d at operator %d, graph %s has %d and %d", s.File, i, a.Tensor, a.At, g.File, len(g.Tensors), len(g.Ops))
		case a.Bytes > g.Tensors[a.Tensor].Bytes:
			return fmt.Errorf("schedule %s: row %d: %v of %d bytes of a tensor of %d", s.File, i, a.Kind, a.Bytes, g.Tensors[a.Tensor].Bytes)
		}
	}
	return nil
}

// WriteSchedule writes a schedule for a graph that was read or written. It sets in its Meta what follows from the two: the policy, and all that
// is said of the graph.
func WriteSchedule(w io.Writer, s *Schedule, g *Graph) error {
	switch {
	case g.Digest == "":
		return errors.New("write schedule: BUG: its graph was neither read nor written")
	case s.Slots != nil && len(s.Slots) != len(s.Actions):
		return fmt.Errorf("write schedule: BUG: %d slots of %d actions", len(s.Slots), len(s.Actions))
	}
	s.describe(g)
	out := schedule.NewWriter(w, s.Meta)
	b := &schedule.Batch{}
	for i := range s.Actions {
		row, err := s.row(i, g)
		if err != nil {
			return fmt.Errorf("write schedule: row %d: %w", i, err)
		}
		row.Name = out.Strings().Code(g.Tensors[row.Tensor].Name)
		b.Append(row)
		if b.Len() == batchRows {
			if err := out.Write(b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	if err := out.Write(b); err != nil {
		return err
	}
	return out.Close()
}

// describe sets in the metadata what follows from the schedule and its graph.
func (s *Schedule) describe(g *Graph) {
	of, m := g.describe(), &s.Meta
	m.Policy, m.Digest = s.Policy, g.Digest
	m.Graph, m.Device, m.Operators, m.Tensors = of.Name, of.Device, of.Operators, of.Tensors
	m.PlainNS, m.PlainPeak = of.ComputeNS, of.PlainPeak
}

// row fills a row of the file, but for the name.
func (s *Schedule) row(i int, g *Graph) (schedule.Action, error) {
	a := &s.Actions[i]
	if a.Tensor < 0 || int(a.Tensor) >= len(g.Tensors) {
		return schedule.Action{}, fmt.Errorf("tensor %d of %d", a.Tensor, len(g.Tensors))
	}
	kind := schedule.Kind(a.Kind)
	row := schedule.Action{Kind: kind, Tensor: int64(a.Tensor), Operator: int64(a.At), Bytes: a.Bytes, Slot: -1, Lane: kind.Lane()}
	if s.Slots != nil {
		row.Slot = s.Slots[i]
	}
	return row, nil
}
