package graph

import "gm/formats/column"

// table describes the files of this package.
func table() *column.Table[Batch, Meta] {
	return &column.Table[Batch, Meta]{
		Schema:  column.Schema{Name: "graph", Major: 1, Minor: 1},
		Fields:  (*Batch).fields,
		Entries: (*Meta).entries,
		Rules:   func(m *Meta) (column.Rules[Batch], error) { return NewValidator(m) },
	}
}

// fields ties the columns of a file to those of b.
func (b *Batch) fields() []column.Field {
	return []column.Field{
		column.Enum("kind", &b.Kind, kindNames),
		column.Monotone("operator", &b.Operator),
		column.Int64("tensor", &b.Tensor),
		column.Int64("input", &b.Input),
		column.Text("name", &b.Name),
		column.Text("type", &b.Type),
		column.Enum("phase", &b.Phase, phaseNames),
		column.Int32("layer", &b.Layer),
		column.Int64("duration_ns", &b.DurationNS),
		column.Int64("base_bytes", &b.BaseBytes),
		column.Int64("bytes", &b.Bytes),
		column.Int64("recompute_ns", &b.RecomputeNS),
		column.Int64("row_bytes", &b.RowBytes),
		column.Text("role", &b.Role),
		column.Int32("saved", &b.Saved),
		column.Int64("version", &b.Version),
		column.Text("dtype", &b.DType),
		column.Text("shape", &b.Shape),
		column.Int64("origin", &b.Origin).Added(-1),
	}
}

// entries ties the metadata of a file to the fields of m.
func (m *Meta) entries() []column.Entry {
	return []column.Entry{
		{Key: "name", Value: &m.Name},
		{Key: "device", Value: &m.Device},
		{Key: "capacity", Value: &m.Capacity},
		{Key: "operators", Value: &m.Operators},
		{Key: "tensors", Value: &m.Tensors},
		{Key: "compute_ns", Value: &m.ComputeNS},
		{Key: "plain_peak", Value: &m.PlainPeak},
		{Key: "complete", Value: &m.Complete},
		{Key: "order", Value: &m.Order},
		{Key: "lower_bound", Value: &m.LowerBound},
		{Key: "source", Value: &m.Source},
		{Key: "host", Value: &m.Host},
		{Key: "pid", Value: &m.PID},
		{Key: "rank", Value: &m.Rank},
		{Key: "local_rank", Value: &m.LocalRank},
		{Key: "world_size", Value: &m.WorldSize},
		{Key: "command", Value: &m.Command},
	}
}
