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

// column is a column of a format.
type column struct {
	names    []string // alternatives, in lower case
	required bool
}

// table reads the lines of a CSV with a header.
type table struct {
	*text
	columns []column
	places  []int // index of each column in a line; -1 if there is none
	width   int
	fields  []string // of the current line
	unread  bool     // the current line is a row that next has yet to return
}

// table reads the header and finds the columns in it. Other columns are ignored. If isRow is not nil and reports that the
// first line is a row, there is no header, and the columns are in the given order.
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

// maxColumns is the most fields that a line may have.
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

// name returns the first name of a column, for messages.
func (t *table) name(c int) string { return t.columns[c].names[0] }

// field returns a field without surrounding spaces; "" if there is no such column.
func (t *table) field(c int) string {
	if t.places[c] < 0 {
		return ""
	}
	return strings.TrimSpace(t.fields[t.places[c]])
}

// integer returns a field as a number from low to high; 0 if the field is empty or there is no such column.
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

// address returns a field as an address; 0 if the field is empty or there is no such column.
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

// parseInt parses a decimal integer, or a hexadecimal one after 0x.
func parseInt(text string) (int64, error) {
	n, err := strconv.ParseInt(text, base(text), 64)
	return n, explain(text, err)
}

func parseUint(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, base(text), 64)
	return n, explain(text, err)
}

// base returns 0, with which strconv interprets the prefix, only for hexadecimal numbers: other numbers with a leading
// zero are decimal, not octal.
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

// clip shortens a quotation from an input.
func clip(text string) string {
	if len(text) > 60 {
		return text[:60] + "..."
	}
	return text
}

// done returns nil for io.EOF, and any other error unchanged.
func done(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
