package summary

import (
	"fmt"
	"io"
	"strings"

	"gm/formats/column"
)

// Reader reads summaries and checks them.
type Reader = column.Reader[Batch, Meta]

// Writer writes summaries and checks them.
type Writer = column.Writer[Batch, Meta]

// Meta is empty: all of it is in the rows.
type Meta struct{}

// NewReader reads a file of size bytes. The name is for errors.
func NewReader(src io.ReaderAt, size int64, name string) (*Reader, error) {
	return table().NewReader(src, size, name)
}

// NewWriter starts a file. Nothing is written before the first row group is full.
func NewWriter(w io.Writer) *Writer { return table().NewWriter(w, Meta{}) }

func table() *column.Table[Batch, Meta] {
	return &column.Table[Batch, Meta]{
		Schema:  column.Schema{Name: "summary", Major: 1, Minor: 0},
		Fields:  (*Batch).fields,
		Entries: func(*Meta) []column.Entry { return nil },
		Rules:   func(*Meta) (column.Rules[Batch], error) { return &rules{}, nil },
	}
}

// Batch holds consecutive rows.
type Batch struct {
	texts   [9][]int32
	numbers [18 + len(tagNames) + len(causeNames)][]int64
}

// text and number bind a column to a field of a row.
type text struct {
	name  string
	field *string
}

type number struct {
	name  string
	field *int64
}

func (s *Summary) texts() []text {
	return []text{
		{"job", &s.Job}, {"name", &s.Name}, {"host", &s.Host}, {"card", &s.Card}, {"command", &s.Command}, {"source", &s.Source},
		{"settings", &s.Settings}, {"helps", &s.Helps}, {"stacks", &s.Stacks},
	}
}

func (s *Summary) numbers() []number {
	all := []number{
		{"rank", &s.Rank}, {"world_size", &s.WorldSize}, {"device", &s.Device}, {"pid", &s.PID}, {"start_ns", &s.StartNS},
		{"duration_ns", &s.Duration}, {"rows", &s.Rows}, {"iterations", &s.Iterations}, {"iteration_ns", &s.IterationNS}, {"ooms", &s.OOMs},
		{"capacity", &s.Capacity}, {"peak", &s.Peak}, {"reserved", &s.Reserved}, {"driver", &s.Driver}, {"nccl", &s.NCCL},
		{"torch", &s.Torch}, {"expandable", &s.Expandable}, {"stitch", &s.Stitch},
	}
	for i, name := range tagNames {
		all = append(all, number{"tag_" + strings.ReplaceAll(name, " ", "_"), &s.Tags[i]})
	}
	for i, name := range causeNames {
		all = append(all, number{"lost_" + strings.ReplaceAll(name, " ", "_"), &s.Lost[i]})
	}
	return all
}

func (b *Batch) fields() []column.Field {
	var s Summary
	var all []column.Field
	for i, t := range s.texts() {
		all = append(all, column.Text(t.name, &b.texts[i]))
	}
	for i, n := range s.numbers() {
		all = append(all, column.Int64(n.name, &b.numbers[i]))
	}
	return all
}

// Len returns the number of rows.
func (b *Batch) Len() int { return len(b.texts[0]) }

// Write adds rows to a file.
func Write(w *Writer, rows []*Summary) error {
	b := &Batch{}
	for _, s := range rows {
		for i, t := range s.texts() {
			b.texts[i] = append(b.texts[i], w.Strings().Code(*t.field))
		}
		for i, n := range s.numbers() {
			b.numbers[i] = append(b.numbers[i], *n.field)
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("write summary: %w", err)
		}
	}
	return w.Write(b)
}

// Each calls visit with every row that is still to be read. An error of visit ends the reading and is returned unchanged.
func Each(r *Reader, visit func(*Summary) error) error {
	row := 0
	for {
		b, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for k := range b.Len() {
			s := &Summary{}
			for i, t := range s.texts() {
				*t.field = r.Strings().Text(b.texts[i][k])
			}
			for i, n := range s.numbers() {
				*n.field = b.numbers[i][k]
			}
			if err := s.check(); err != nil {
				return r.Wrap(fmt.Errorf("row %d: %w", row, err))
			}
			if err := visit(s); err != nil {
				return err
			}
			row++
		}
	}
}

// rules hold for single rows alone, which Write and Each check.
type rules struct{}

func (*rules) Check(*Batch) error { return nil }
func (*rules) Close() error       { return nil }
