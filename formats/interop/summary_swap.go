package main

import (
	"gm/formats/graph"
	"gm/formats/schedule"
)

func summarizeGraph(name string) (*summary, error) {
	r, err := graph.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c := newCounter()
	var moves []move
	sizes, lasts := map[int64]int64{}, map[int64]int64{} // of tensors
	err = graph.Each(r, func(row *graph.Row) error {
		countRow(c, r, row)
		switch row.Kind {
		case graph.KindTensor:
			sizes[row.Tensor] = row.Bytes
			moves = append(moves, move{row.Operator, row.Bytes})
		case graph.KindUse:
			lasts[row.Tensor] = row.Operator
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for tensor, last := range lasts {
		moves = append(moves, move{last + 1, -sizes[tensor]})
	}
	return c.summary(r.Rows(), peakOf(moves)), nil
}

func countRow(c *counter, r *graph.Reader, row *graph.Row) {
	c.text("kind", row.Kind.String())
	c.integer("operator", row.Operator)
	c.integer("tensor", row.Tensor)
	c.integer("input", row.Input)
	c.text("name", r.Strings().Text(row.Name))
	c.text("type", r.Strings().Text(row.Type))
	c.text("phase", row.Phase.String())
	c.integer("layer", int64(row.Layer))
	c.integer("duration_ns", row.DurationNS)
	c.integer("base_bytes", row.BaseBytes)
	c.integer("bytes", row.Bytes)
	c.integer("recompute_ns", row.RecomputeNS)
	c.integer("row_bytes", row.RowBytes)
	c.text("role", r.Strings().Text(row.Role))
	c.integer("saved", int64(row.Saved))
	c.integer("version", row.Version)
	c.text("dtype", r.Strings().Text(row.DType))
	c.text("shape", r.Strings().Text(row.Shape))
}

func summarizeSchedule(name string) (*summary, error) {
	r, err := schedule.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c := newCounter()
	var moves []move
	err = schedule.Each(r, func(a *schedule.Action) error {
		countAction(c, r, a)
		switch a.Kind {
		case schedule.Offload:
			moves = append(moves, move{a.Operator, a.Bytes})
		case schedule.Prefetch:
			moves = append(moves, move{a.Operator, -a.Bytes})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.summary(r.Rows(), peakOf(moves)), nil
}

func countAction(c *counter, r *schedule.Reader, a *schedule.Action) {
	c.text("kind", a.Kind.String())
	c.integer("tensor", a.Tensor)
	c.text("name", r.Strings().Text(a.Name))
	c.integer("operator", a.Operator)
	c.integer("bytes", a.Bytes)
	c.integer("slot", a.Slot)
	c.text("lane", a.Lane.String())
}
