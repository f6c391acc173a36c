package trace

import "gm/formats/column"

// table describes the files of this package.
func table() *column.Table[Batch, Meta] {
	return &column.Table[Batch, Meta]{
		Schema:  column.Schema{Name: "trace", Major: 1, Minor: 3},
		Fields:  (*Batch).fields,
		Entries: (*Meta).entries,
		Rules: func(m *Meta) (column.Rules[Batch], error) {
			return &Validator{meta: m}, m.check()
		},
	}
}

// readable is the table with the bounds that apply to files when they are read.
func readable() *column.Table[Batch, Meta] {
	t := table()
	t.Rules = func(m *Meta) (column.Rules[Batch], error) {
		return &Validator{meta: m, maxLive: MaxLive}, m.check()
	}
	return t
}

// fields ties the columns of a file to those of b.
func (b *Batch) fields() []column.Field {
	return []column.Field{
		column.Monotone("time_ns", &b.TimeNS),
		column.Enum("op", &b.Op, opNames),
		column.Monotone("id", &b.ID),
		column.Int64("size", &b.Size),
		column.Uint64("addr", &b.Addr),
		column.Int32("device", &b.Device),
		column.Int64("stream", &b.Stream),
		column.Text("pool", &b.Pool),
		column.Int32("thread", &b.Thread),
		column.Enum("level", &b.Level, levelNames),
		column.Text("stack", &b.Stack),
		column.Text("tag", &b.Tag),
		column.Text("derived", &b.Derived).Added(0),
	}
}

// entries ties the metadata of a file to the fields of m.
func (m *Meta) entries() []column.Entry {
	return []column.Entry{
		{Key: "devices", Value: &m.Devices},
		{Key: "capacity", Value: &m.Capacity},
		{Key: "host", Value: &m.Host},
		{Key: "pid", Value: &m.PID},
		{Key: "rank", Value: &m.Rank},
		{Key: "local_rank", Value: &m.LocalRank},
		{Key: "world_size", Value: &m.WorldSize},
		{Key: "command", Value: &m.Command},
		{Key: "source", Value: &m.Source},
		{Key: "alignment", Value: &m.Alignment},
		{Key: "alloc_conf", Value: &m.AllocConf},
		{Key: "incomplete", Value: &m.Incomplete},
	}
}
