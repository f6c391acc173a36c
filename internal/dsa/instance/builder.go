package instance

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gm/internal/dsa"
)

// builder builds the problems of an instance, row by row.
type builder struct {
	options  Options
	instance *Instance
	arenas   map[string]int
	ids      map[string]int32 // rows
	fields   []string         // of the current line
	total    int64            // bytes, of all sizes
	unit     int64            // bytes: the greatest common divisor of sizes, alignments and fixed offsets
	links    []link
}

// link is a row that names another.
type link struct {
	line int
	row  int32
	kind kind
	to   string
}

func newBuilder(in *Instance, o Options) *builder {
	rows := min(strings.Count(in.text, "\n"), 1<<20) // of which many may be empty
	return &builder{options: o, instance: in, arenas: map[string]int{}, ids: make(map[string]int32, rows)}
}

// add reads a line.
func (b *builder) add(line string, number int) error {
	in := b.instance
	switch {
	case len(line) > maxLine:
		return errLong
	case in.rows >= maxRows:
		return fmt.Errorf("more than %d buffers", maxRows)
	}
	if b.fields = fields(b.fields[:0], line); len(b.fields) != in.columns.width {
		return fmt.Errorf("%d fields, expected %d", len(b.fields), in.columns.width)
	}
	if err := b.name(number); err != nil {
		return err
	}
	a, err := b.arena()
	if err != nil {
		return err
	}
	if err := b.buffer(&a.Problem); err != nil {
		return err
	}
	a.Rows = append(a.Rows, int32(in.rows))
	in.rows++
	return nil
}

// name records the id of the row, and the ids it refers to.
func (b *builder) name(number int) error {
	row := int32(b.instance.rows)
	name := b.field(id)
	if b.ids[name] = row; len(b.ids) != b.instance.rows+1 {
		return fmt.Errorf("the id %q is used twice", clip(name))
	}
	for _, k := range []kind{sameAs, nextTo} {
		if to := b.field(k); to != "" {
			b.links = append(b.links, link{number, row, k, to})
		}
	}
	if b.field(gaps) != "" {
		return fmt.Errorf("gaps in a buffer's life are not supported")
	}
	return nil
}

// arena returns the arena of the row.
func (b *builder) arena() (*Arena, error) {
	in := b.instance
	name := b.field(arena)
	i, ok := b.arenas[name]
	if !ok {
		if i = len(in.Arenas); i == maxArenas {
			return nil, fmt.Errorf("more than %d arenas", maxArenas)
		}
		b.arenas[name] = i
		in.Arenas = append(in.Arenas, Arena{Name: name, Problem: dsa.Problem{Period: b.options.Period}})
	}
	return &in.Arenas[i], nil
}

// buffer adds the row to a problem.
func (b *builder) buffer(p *dsa.Problem) error {
	from, until, err := b.life()
	if err != nil {
		return err
	}
	bytes, err := b.integer(size, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	if b.total += bytes; b.total < 0 {
		return fmt.Errorf("the sizes add up to more than an int64 holds")
	}
	align, err := b.integer(alignment, 0, maxAlignment)
	if err != nil {
		return err
	}
	fixed, err := b.fixed(align)
	if err != nil {
		return err
	}
	b.unit = gcd(b.unit, bytes)
	if align > 1 {
		b.unit = gcd(b.unit, align)
	}
	if fixed > 0 {
		b.unit = gcd(b.unit, fixed)
	}
	p.Start, p.End, p.Size = append(p.Start, from), append(p.End, until), append(p.Size, bytes)
	if b.instance.columns.has(alignment) {
		p.Aligns = append(p.Aligns, align)
	}
	if b.instance.columns.has(offset) {
		p.Fixed = append(p.Fixed, fixed)
	}
	return nil
}

// maxAlignment bounds alignments, in bytes.
const maxAlignment = 1 << 40

// life returns the beginning and the end of the buffer's life.
func (b *builder) life() (from, until int64, err error) {
	if from, err = b.integer(lower, math.MinInt64, math.MaxInt64); err != nil {
		return 0, 0, err
	}
	if b.instance.columns.has(upper) {
		until, err = b.integer(upper, math.MinInt64, math.MaxInt64)
	} else if until, err = b.integer(end, math.MinInt64, math.MaxInt64-1); err == nil {
		until++
	}
	if err == nil && until < from {
		err = fmt.Errorf("the life ends at %d, before its start at %d", until, from)
	}
	return from, until, err
}

// fixed returns the given offset, or dsa.Free.
func (b *builder) fixed(align int64) (int64, error) {
	if b.field(offset) == "" {
		return dsa.Free, nil
	}
	at, err := b.integer(offset, math.MinInt64, math.MaxInt64)
	switch {
	case err != nil:
		return 0, err
	case at < 0:
		return dsa.Free, nil
	}
	for _, a := range []int64{align, b.options.Align} {
		if a > 1 && at%a != 0 {
			return 0, fmt.Errorf("offset %d is not a multiple of the alignment, %d", at, a)
		}
	}
	return at, nil
}

// field returns a field without surrounding spaces, or "" when there is no such column.
func (b *builder) field(k kind) string {
	if !b.instance.columns.has(k) {
		return ""
	}
	return strings.TrimSpace(b.fields[b.instance.columns.place[k]])
}

// integer returns a field as a number from low to high. It is 0 when the column is missing, or the field is optional and empty.
func (b *builder) integer(k kind, low, high int64) (int64, error) {
	text := b.field(k)
	if text == "" && k == alignment {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "":
		return 0, fmt.Errorf("%s is empty", k)
	case err != nil && err.(*strconv.NumError).Err == strconv.ErrRange:
		return 0, fmt.Errorf("%s is %s, more than 64 bits hold", k, clip(text))
	case err != nil:
		return 0, fmt.Errorf("%s is %q, expected an integer", k, clip(text))
	case n < low && high == math.MaxInt64:
		return 0, fmt.Errorf("%s is %d, expected at least %d", k, n, low)
	case n < low || n > high:
		return 0, fmt.Errorf("%s is %d, expected %d to %d", k, n, low, high)
	}
	return n, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
