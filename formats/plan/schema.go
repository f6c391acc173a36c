package plan

import "gm/formats/column"

// table describes the files of this package.
func table() *column.Table[Batch, Meta] {
	return &column.Table[Batch, Meta]{
		Schema:  column.Schema{Name: "plan", Major: 1, Minor: 3},
		Fields:  (*Batch).fields,
		Entries: (*Meta).entries,
		Rules:   func(m *Meta) (column.Rules[Batch], error) { return NewValidator(m) },
	}
}

// fields ties the columns of a file to those of b.
func (b *Batch) fields() []column.Field {
	return []column.Field{
		column.Monotone("id", &b.ID),
		column.Int64("size", &b.Size),
		column.Monotone("alloc", &b.Alloc),
		column.Monotone("free", &b.Free),
		column.Monotone("alloc_ns", &b.AllocNS),
		column.Monotone("free_ns", &b.FreeNS),
		column.Int32("device", &b.Device),
		column.Int64("stream", &b.Stream),
		column.Text("pool", &b.Pool),
		column.Text("arena", &b.Arena),
		column.Int64("offset", &b.Offset),
		column.Text("tag", &b.Tag).Added(0),
	}
}

// entries ties the metadata of a file to the fields of m.
func (m *Meta) entries() []column.Entry {
	return []column.Entry{
		{Key: "peak", Value: &m.Peak},
		{Key: "lower_bound", Value: &m.LowerBound},
		{Key: "solver", Value: &m.Solver},
		{Key: "solve_ns", Value: &m.SolveNS},
		{Key: "optimal", Value: &m.Optimal},
		{Key: "alignment", Value: &m.Alignment},
		{Key: "rows", Value: &m.Rows},
		{Key: "first", Value: &m.First},
		{Key: "end", Value: &m.End},
		{Key: "period", Value: &m.Period},
		{Key: "digest", Value: &m.Digest},
		{Key: "source", Value: &m.Source},
		{Key: "devices", Value: &m.Devices},
		{Key: "capacity", Value: &m.Capacity},
		{Key: "rows_of", Value: &m.RowsOf},
		{Key: "alloc_conf", Value: &m.AllocConf},
		{Key: "segments", Value: &m.Segments},
		{Key: "emptied", Value: &m.Emptied},
		{Key: "preexisting", Value: &m.Preexisting},
	}
}
