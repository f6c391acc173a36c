package column

import (
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Field binds a column of a file to the slice that holds its rows in the caller's batch: a Writer takes the rows from
// the slice, a Reader points the slice at the rows it has read.
type Field struct {
	name  string
	kind  kind
	names []string // of an enumeration, by value
	rows  rows

	added   bool  // in a minor version: older files lack it
	missing int64 // its value there
}

type kind uint8

const (
	kindInteger  kind = iota // int64 or int32
	kindUnsigned             // uint64
	kindMonotone             // int64, mostly growing in small steps
	kindText                 // int32, a code of the file's Strings
	kindEnum                 // int8, an index of names; stored as the name
)

// Int64 describes a column of integers, many of which repeat.
func Int64(name string, rows *[]int64) Field {
	return Field{name: name, kind: kindInteger, rows: &slot[int64]{at: rows}}
}

// Monotone describes a column of integers that mostly grow from row to row, such as times.
func Monotone(name string, rows *[]int64) Field {
	return Field{name: name, kind: kindMonotone, rows: &slot[int64]{at: rows}}
}

// Uint64 describes a column of unsigned integers, many of which repeat, such as addresses.
func Uint64(name string, rows *[]uint64) Field {
	return Field{name: name, kind: kindUnsigned, rows: &slot[uint64]{at: rows}}
}

// Int32 describes a column of small integers, many of which repeat.
func Int32(name string, rows *[]int32) Field {
	return Field{name: name, kind: kindInteger, rows: &slot[int32]{at: rows}}
}

// Text describes a column of strings, which the batch holds as codes of the file's Strings.
func Text(name string, rows *[]int32) Field {
	return Field{name: name, kind: kindText, rows: &slot[int32]{at: rows}}
}

// Enum describes a column of strings from a short list, which the batch holds as indexes of names.
func Enum[T ~int8](name string, rows *[]T, names []string) Field {
	return Field{name: name, kind: kindEnum, names: names, rows: &slot[T]{at: rows}}
}

// Added returns f as a column that a minor version added. In a file that lacks it each row has the given value.
func (f Field) Added(missing int64) Field {
	f.added, f.missing = true, missing
	return f
}

// textual reports whether the file holds the column as strings.
func (f *Field) textual() bool { return f.kind == kindText || f.kind == kindEnum }

// physical returns the type in which the file stores the column.
func (f *Field) physical() format.Type {
	switch {
	case f.textual():
		return format.ByteArray
	case f.rows.width() == 4:
		return format.Int32
	default:
		return format.Int64
	}
}

// element returns the column's entry in the schema of a file.
func (f *Field) element() format.SchemaElement {
	e := format.SchemaElement{
		Name:           f.name,
		Type:           thrift.New(f.physical()),
		RepetitionType: thrift.New(format.Required),
	}
	switch {
	case f.textual():
		e.ConvertedType = thrift.New(deprecated.UTF8)
		e.LogicalType.Value = &format.StringType{}
	case f.kind == kindUnsigned:
		e.ConvertedType = thrift.New(deprecated.Uint64)
		e.LogicalType.Value = &format.IntType{BitWidth: 64, IsSigned: false}
	}
	return e
}

// rows is a slot of any element type.
type rows interface {
	width() int
	length() int
	// widen appends the rows [from, to) to dst.
	widen(dst []int64, from, to int) []int64
	// set makes values the rows of the page.
	set(values []int64)
	// fill makes v the n rows of the page.
	fill(v int64, n int)
	// gather makes table[i], for each i of indexes, the rows of the page; it returns false if an index is out of range.
	gather(table []int64, indexes []int32) bool
	// find returns the first of the rows [from, to) of the page that is v, or -1.
	find(v int64, from, to int) int
	// show points the batch at the rows [from, to) of the page.
	show(from, to int)
}

// slot holds the decoded rows of a page and the slice of the batch that is to point at them.
type slot[T ~int8 | ~int32 | ~int64 | ~uint64] struct {
	at   *[]T
	page []T
}

func (s *slot[T]) width() int {
	var v T
	switch any(v).(type) {
	case int64, uint64:
		return 8
	case int32:
		return 4
	}
	return 1
}

func (s *slot[T]) length() int { return len(*s.at) }

func (s *slot[T]) widen(dst []int64, from, to int) []int64 {
	for _, v := range (*s.at)[from:to] {
		dst = append(dst, int64(v))
	}
	return dst
}

func (s *slot[T]) resize(n int) {
	if cap(s.page) < n {
		s.page = make([]T, n)
	}
	s.page = s.page[:n]
}

func (s *slot[T]) set(values []int64) {
	s.resize(len(values))
	for i, v := range values {
		s.page[i] = T(v)
	}
}

func (s *slot[T]) fill(v int64, n int) {
	s.resize(n)
	for i := range s.page {
		s.page[i] = T(v)
	}
}

func (s *slot[T]) gather(table []int64, indexes []int32) bool {
	s.resize(len(indexes))
	page := s.page
	for i, index := range indexes {
		if uint(index) >= uint(len(table)) || i >= len(page) {
			return false
		}
		page[i] = T(table[index])
	}
	return true
}

func (s *slot[T]) find(v int64, from, to int) int {
	for i, w := range s.page[from:to] {
		if int64(w) == v {
			return from + i
		}
	}
	return -1
}

// show caps the slice, so that a caller that appends to the batch does not overwrite the rows that follow.
func (s *slot[T]) show(from, to int) { *s.at = s.page[from:to:to] }
