package tensors

import "gm/formats/column"

// table describes the files of this package.
func table() *column.Table[Batch, Meta] {
	return &column.Table[Batch, Meta]{
		Schema:  column.Schema{Name: "tensors", Major: 1, Minor: 0},
		Fields:  (*Batch).fields,
		Entries: (*Meta).entries,
		Rules:   func(m *Meta) (column.Rules[Batch], error) { return &Validator{meta: m, alloc: -1}, m.check() },
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
		column.Text("level", &b.Level),
		column.Text("pool", &b.Pool),
		column.Text("tag", &b.Tag),
		column.Text("certainty", &b.Certainty),
		column.Text("rule", &b.Rule),
		column.Text("stack", &b.Stack),
	}
}

// entries ties the metadata of a file to the fields of m.
func (m *Meta) entries() []column.Entry {
	return []column.Entry{
		{Key: "rows", Value: &m.Rows},
		{Key: "source", Value: &m.Source},
		{Key: "devices", Value: &m.Devices},
		{Key: "capacity", Value: &m.Capacity},
	}
}
