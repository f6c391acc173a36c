package importer

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// column is a column that a format knows.
type column struct {
	names    []string // any of these, in lower case
	required bool
}

// table reads the lines of a CSV with a header.
type table struct {
	*text
	columns []column
	places  []int // of each column in a line; -1 when there is none
	width   int
	fields  []string // of the present line
	unread  bool     // the present line is a row that next is to return
}

// table reads the header and finds the columns in it. Others are ignored. When the first line is a row already, which
// isRow tells unless it is nil, the columns are in the order given.
func (t *text) table(columns []column, isRow func(fields []string) bool) (*table, error) {
	tab := &table{text: t, columns: columns}
	if err := tab.read(); err != nil {
		return nil, err
	}
	tab.width = len(tab.fields)
	if isRow != nil && isRow(tab.fields) {
		for i := range columns {
			tab.places = append(tab.places, i)
		}
		tab.unread = true
		return tab, nil
	}
	names := make([]string, tab.width)
	for i, f := range tab.fields {
		names[i] = strings.ToLower(strings.TrimSpace(f))
		if names[i] != "" && slices.Contains(names[:i], names[i]) {
			return nil, t.fail("two columns named %q", clip(names[i]))
		}
	}
	for _, c := range columns {
		place := slices.IndexFunc(names, func(name string) bool { return slices.Contains(c.names, name) })
		if place < 0 && c.required {
			return nil, t.fail("no column named %s", strings.Join(c.names, " or "))
		}
		tab.places = append(tab.places, place)
	}
	return tab, nil
}

// maxColumns bounds the fields of a line.
const maxColumns = 1 << 10

// read splits the next line; io.EOF after the last one.
func (t *table) read() error {
	line, err := t.lines.next()
	if err != nil {
		return err
	}
	var ok bool
	if t.fields, ok = splitCSV(t.fields[:0], string(line)); !ok {
		return t.fail("quotes do not match")
	}
	if len(t.fields) > maxColumns {
		return t.fail("%d fields; at most %d are read", len(t.fields), maxColumns)
	}
	return nil
}

// next reads the next row; io.EOF after the last one.
func (t *table) next() error {
	if t.unread {
		t.unread = false
		return nil
	}
	if err := t.read(); err != nil {
		return err
	}
	if len(t.fields) != t.width {
		return t.fail("%d fields, expected %d", len(t.fields), t.width)
	}
	return nil
}

// name returns the first of a column's names, for messages.
func (t *table) name(c int) string { return t.columns[c].names[0] }

// field returns a field without the spaces around it; "" when there is no such column.
func (t *table) field(c int) string {
	if t.places[c] < 0 {
		return ""
	}
	return strings.TrimSpace(t.fields[t.places[c]])
}

// integer returns a field as a number from low to high; 0 when there is no such column or it is empty.
func (t *table) integer(c int, low, high int64) (int64, error) {
	text := t.field(c)
	if text == "" && !t.columns[c].required {
		return 0, nil
	}
	n, err := parseInt(text)
	if err == nil && (n < low || n > high) {
		err = rangeError(text, low, high)
	}
	if err != nil {
		return 0, t.fail("%s %w", t.name(c), err)
	}
	return n, nil
}

// address returns a field as an address; 0 when there is no such column or it is empty.
func (t *table) address(c int) (uint64, error) {
	text := t.field(c)
	if text == "" && !t.columns[c].required {
		return 0, nil
	}
	n, err := parseUint(text)
	if err != nil {
		return 0, t.fail("%s %w", t.name(c), err)
	}
	return n, nil
}

func rangeError(text string, low, high int64) error {
	switch {
	case high == math.MaxInt64:
		return fmt.Errorf("is %s, expected at least %d", clip(text), low)
	}
	return fmt.Errorf("is %s, expected %d to %d", clip(text), low, high)
}

// parseInt reads a decimal integer, or a hexadecimal one after 0x.
func parseInt(text string) (int64, error) {
	n, err := strconv.ParseInt(text, base(text), 64)
	return n, explain(text, err)
}

func parseUint(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, base(text), 64)
	return n, explain(text, err)
}

// base is 0, by which strconv takes the prefix into account, only for hexadecimal numbers: elsewhere a leading zero
// means nothing.
func base(text string) int {
	digits := strings.TrimPrefix(text, "-")
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X") {
		return 0
	}
	return 10
}

func explain(text string, err error) error {
	switch {
	case err == nil:
		return nil
	case text == "":
		return errors.New("is empty")
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("is out of range: %s", clip(text))
	}
	return fmt.Errorf("is %q, expected an integer", clip(text))
}

// clip keeps what is quoted from an input short.
func clip(text string) string {
	if len(text) > 60 {
		return text[:60] + "..."
	}
	return text
}

// done takes the end of the input for none of an error.
func done(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
