package schedule

import "gm/formats/column"

// table describes the files of this package.
func table() *column.Table[Batch, Meta] {
	return &column.Table[Batch, Meta]{
		Schema:  column.Schema{Name: "schedule", Major: 1, Minor: 1},
		Fields:  (*Batch).fields,
		Entries: (*Meta).entries,
		Rules:   func(m *Meta) (column.Rules[Batch], error) { return NewValidator(m) },
	}
}

// fields ties the columns of a file to those of b.
func (b *Batch) fields() []column.Field {
	return []column.Field{
		column.Enum("kind", &b.Kind, kindNames),
		column.Int64("tensor", &b.Tensor),
		column.Text("name", &b.Name),
		column.Monotone("operator", &b.Operator),
		column.Int64("bytes", &b.Bytes),
		column.Int64("slot", &b.Slot),
		column.Enum("lane", &b.Lane, laneNames),
	}
}

// entries ties the metadata of a file to the fields of m.
func (m *Meta) entries() []column.Entry {
	return []column.Entry{
		{Key: "digest", Value: &m.Digest},
		{Key: "graph", Value: &m.Graph},
		{Key: "device", Value: &m.Device},
		{Key: "operators", Value: &m.Operators},
		{Key: "tensors", Value: &m.Tensors},
		{Key: "policy", Value: &m.Policy},
		{Key: "device_budget", Value: &m.DeviceBudget},
		{Key: "host_budget", Value: &m.HostBudget},
		{Key: "link", Value: &m.Link},
		{Key: "gpus", Value: &m.GPUs},
		{Key: "step_ns", Value: &m.StepNS},
		{Key: "plain_ns", Value: &m.PlainNS},
		{Key: "peak", Value: &m.Peak},
		{Key: "plain_peak", Value: &m.PlainPeak},
		{Key: "host_peak", Value: &m.HostPeak},
		{Key: "alternatives", Value: &m.Alternatives},
	}
}
